/** `stamp console`: serves a page that shows the stamp, until Ctrl-C. It opens no port beyond loopback. */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type ClusterConfig, composeCluster, DataFolder, ownTransport, StampInspector } from "@stamp/cluster";
import { drills } from "@stamp/drills";
import { credentialOf, GrpcTransport, inWords, NodeClock, NodeRandom, serveHttp } from "@stamp/ports-node";
import { Accounts, PartitionManager } from "@stamp/wire";
import type { Command } from "commander";
import { addressKind } from "../accounts/location-command.ts";
import { CommandError, configOf, root, withConfig } from "../context.ts";
import { frontEndsOf } from "../faults/faults-command.ts";
import { locationAt } from "../geo/operation.ts";
import { factAt, type StampFacts } from "../health/facts.ts";
import { gather, sinceNow } from "../health/gather.ts";
import { addNodeTo, refuseBadRemoval, stopForGood } from "../nodes/node-changes.ts";
import { say } from "../say.ts";
import { locationIn, severalIn } from "../stamps/several.ts";
import { topLevel } from "../top-level.ts";
import { kindOf, oneOf } from "../values.ts";
import { auditLog } from "./audit-log.ts";
import { type ConsoleParts, consoleHandler } from "./console-handler.ts";
import { dataClients } from "./data/clients.ts";
import { listsOf } from "./lists.ts";
import { LiveStamp } from "./live-stamp.ts";
import { accountOperations } from "./operate/account-operations.ts";
import { DrillDesk } from "./operate/drill-desk.ts";
import { beginDrill } from "./operate/drill-process.ts";
import { faultOperations, faultRows } from "./operate/fault-operations.ts";
import { geoLists, geoOperations } from "./operate/geo-operations.ts";
import { nodeOperations } from "./operate/node-operations.ts";
import { rangeOperations } from "./operate/range-operations.ts";
import { pageFiles } from "./page-files.ts";
import { placeLists } from "./places.ts";
import { HeatHistory } from "./ranges/heat-history.ts";
import { rangeLists } from "./ranges/range-lists.ts";
import { rotateAt } from "./rotate.ts";
import { type ConsoleRole, consoleRoles, Sessions } from "./sessions.ts";

/** The guard answers to these names only. The port is checked when it is opened. */
const loopback = kindOf("127.0.0.1:10010", (text) =>
  /^(127\.0\.0\.1|localhost|\[::1\]):\d{1,5}$/.test(text)
    ? undefined
    : "127.0.0.1, localhost or [::1], with a port; from another machine come through SSH: ssh -L 10010:127.0.0.1:10010 HOST",
);

export function addConsole(program: Command): void {
  const command = topLevel(program, "console").option(
    "--listen <address>",
    "host:port of the page, on loopback (default: 127.0.0.1 and the port behind the front-ends, 10010)",
    loopback,
  );
  command.option(
    "--role <role>",
    "what its links let a browser do: read (see the stamp), data (see and change what is stored, too; the default), operate (change the stamp, too)",
    oneOf(consoleRoles),
  );
  command
    .option(
      "--at <host:port>",
      "the location service, for the view Geo; default: the one of the folder that the stamp's lies in",
      addressKind,
    )
    .option("--secret-file <file>", "with --at: file with the secret of the location service");
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => {
    await serveConsole(configOf(command), command.opts<ConsoleOptions>());
  });
}

interface ConsoleOptions {
  readonly listen?: string;
  readonly role?: ConsoleRole;
  readonly at?: string;
  readonly secretFile?: string;
}

/** Where the location service is: as the options say, or beside the stamp in a folder of several; `at` is empty if it is not known. */
function locationOf(
  { dataDir }: ClusterConfig,
  { at, secretFile = "" }: ConsoleOptions,
): { readonly at: string; readonly secretFile: string } {
  if (at !== undefined) return { at, secretFile };
  const several = severalIn({ dataDir: dirname(resolve(dataDir)) });
  return several === undefined ? { at: "", secretFile } : locationIn(several);
}

async function serveConsole(config: ClusterConfig, options: ConsoleOptions): Promise<void> {
  const { listen = `127.0.0.1:${config.portBase + 10 * config.frontEnds}`, role = "data" } = options;
  const files = await pageFiles(root);
  const transport = ownTransport(config);
  const clock = new NodeClock();
  const random = new NodeRandom();
  const stopped = new AbortController();
  const heat = new HeatHistory();
  const live = new LiveStamp({
    ask: async () => {
      const facts = await gather(config, transport, { view: false, nowMs: sinceNow() });
      heat.took(facts);
      return facts;
    },
    wallMs: () => clock.wallMs(),
    sleep: (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined),
  });
  const sessions = new Sessions(
    () => clock.monotonicMs(),
    () => Buffer.from(random.bytes(32)).toString("base64url"),
  );
  const inspector = (): StampInspector => {
    const lockService = live.facts?.cluster.lockService;
    if (lockService === undefined) throw new Error("the stamp does not answer; the overview says why");
    return new StampInspector(transport, lockService);
  };
  const clients = dataClients(() => {
    const stamp = inspector();
    return { transport, manager: () => stamp.leader("partition-manager"), endpoints: live.facts?.cluster.endpoints ?? noEndpoints };
  });
  const { at, secretFile } = locationOf(config, options);
  const toLocation = new GrpcTransport({ credential: () => credentialOf({ clusterSecretFile: secretFile }) });
  const location = at === "" ? undefined : { at, client: locationAt(toLocation, at) };
  const frontEnds = () => frontEndsOf(live.facts?.processes ?? [], transport);
  const desk = new DrillDesk({
    drills: drills.map(({ name, about, holdUpAimMs }) => ({ name, about, aimMs: holdUpAimMs })),
    whyNot: () => whyNoDrill(config, live.facts),
    begin: (drill) => beginDrill(process.argv[1] ?? "", ["--data", config.dataDir], drill),
    wallMs: () => clock.wallMs(),
  });
  const manager = async () => transport.client(await inspector().leader("partition-manager"), PartitionManager);
  const operations = {
    ...accountOperations({
      accounts: async () => transport.client(await inspector().leader("partition-manager"), Accounts),
      nowMs: () => clock.monotonicMs(),
      sleep: (ms) => delay(ms),
    }),
    ...nodeOperations({
      inspector,
      add: async () => (await addNodeTo(config, undefined)).name,
      refuseRemoval: (node) => refuseBadRemoval(config, node),
      stopForGood: (node) => stopForGood(config, node),
    }),
    ...rangeOperations(manager),
    ...desk.operations,
    ...faultOperations(frontEnds),
    ...geoOperations(location),
  };
  const lists = listsOf(inspector, {
    "/api/drills": async () => desk.shown,
    ...placeLists({ inspector, transport, frontEnds: () => addressesOf(live.facts, "front-end") }),
    ...geoLists(location),
    ...rangeLists({ facts: () => live.facts, heat, manager, wallMs: () => clock.wallMs() }),
    "/api/faults": async () => ({ items: await faultRows(frontEnds()), next: null }),
  });
  const parts = { files, sessions, live, clients, operations, lists, audit: auditOf(config), signal: stopped.signal };
  const door = await serveHttp(consoleHandler(parts), { listen, limits: { connectionsMax: 256, connectionsPerAddressMax: 256 } }).catch(
    (error: unknown) => {
      throw new CommandError(
        `${inWords(error)}; a console that runs prints another link on Enter. Elsewhere: ./stamp console --listen 127.0.0.1:PORT`,
      );
    },
  );
  const link = (): string => `http://${door.address}/#sign-in=${sessions.makeLink(role)}`;
  say(`Console of ${composeCluster() === undefined ? config.dataDir : "the containers"}\n  ${link()}`);
  say("The link signs in one browser, once, within ten minutes. Enter prints another link; Ctrl-C stops the console.");
  const lines = createInterface({ input: process.stdin });
  lines.on("line", () => say(`  ${link()}`));
  const running = live.run();
  await new Promise<void>((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
  lines.close();
  if (desk.isRunning) say("The drill goes on to its end without the console, and mends what it broke: ./stamp health");
  stopped.abort();
  live.stop();
  await door.close(0);
  await running;
  await toLocation.close();
  await transport.close();
}

const addressesOf = (facts: StampFacts | undefined, wanted: string): string[] =>
  (facts?.processes ?? []).filter(({ role }) => role === wanted).map(({ grpc }) => grpc);

/** Why no drill can run on the stamp; empty if one can. Front-ends tell their rules only if the stamp was started for faults on purpose. */
function whyNoDrill(config: ClusterConfig, facts: StampFacts | undefined): string {
  if (composeCluster() !== undefined || config.topology !== undefined)
    return "drills run on a stamp that was started on one machine (./stamp up); on containers: ./stamp drill run NAME --compose";
  if (facts === undefined) return "no stamp answers: a drill begins on one that serves";
  const takesFaults = facts.processes.some(({ answer }) => factAt(answer?.facts, "faultRules") !== undefined);
  return takesFaults ? "" : "this stamp was not started for faults on purpose: ./stamp down, then ./stamp up -d --fault-rules true";
}

const noEndpoints = { blob: "", queue: "", table: "" } as const;

/** On standard error where the stamp has no folder here. */
function auditOf(config: ClusterConfig): ConsoleParts["audit"] {
  const folder = composeCluster() === undefined ? new DataFolder(config.dataDir).logs : undefined;
  const append = (text: string): void => {
    const path = join(folder ?? "", "console.log");
    mkdirSync(dirname(path), { recursive: true });
    rotateAt(path, config.logBytesMax);
    appendFileSync(path, text, { mode: 0o600 });
  };
  return auditLog({
    append: folder === undefined ? undefined : append,
    warn: (text) => process.stderr.write(text),
    wallMs: () => Date.now(),
  });
}
