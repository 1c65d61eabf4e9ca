/** `stamp console`: serves a page that shows the stamp, until Ctrl-C. It opens no port beyond loopback. */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { type ClusterConfig, composeCluster, DataFolder, ownTransport, StampInspector } from "@stamp/cluster";
import { inWords, NodeClock, NodeRandom, serveHttp } from "@stamp/ports-node";
import { Accounts } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, root, withConfig } from "../context.ts";
import { gather, sinceNow } from "../health/gather.ts";
import { addNodeTo, refuseBadRemoval, stopForGood } from "../nodes/node-changes.ts";
import { say } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { kindOf, oneOf } from "../values.ts";
import { auditLog } from "./audit-log.ts";
import { type ConsoleParts, consoleHandler } from "./console-handler.ts";
import { dataClients } from "./data/clients.ts";
import { listsOf } from "./lists.ts";
import { LiveStamp } from "./live-stamp.ts";
import { accountOperations } from "./operate/account-operations.ts";
import { nodeOperations } from "./operate/node-operations.ts";
import { pageFiles } from "./page-files.ts";
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
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => {
    const config = configOf(command);
    const { listen = `127.0.0.1:${config.portBase + 10 * config.frontEnds}`, role = "data" } = command.opts<ConsoleOptions>();
    await serveConsole(config, listen, role);
  });
}

interface ConsoleOptions {
  readonly listen?: string;
  readonly role?: ConsoleRole;
}

async function serveConsole(config: ClusterConfig, listen: string, role: ConsoleRole): Promise<void> {
  const files = await pageFiles(root);
  const transport = ownTransport(config);
  const clock = new NodeClock();
  const random = new NodeRandom();
  const stopped = new AbortController();
  const live = new LiveStamp({
    ask: () => gather(config, transport, { view: false, nowMs: sinceNow() }),
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
  };
  const lists = listsOf(inspector, live);
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
  stopped.abort();
  live.stop();
  await door.close(0);
  await running;
  await transport.close();
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
