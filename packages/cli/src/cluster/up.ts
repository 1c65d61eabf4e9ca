/** `stamp up`, `stamp down`, `stamp reset`. */
import { existsSync, lstatSync, readdirSync, realpathSync, rmdirSync, rmSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { FailureError } from "@stamp/base";
import {
  type ClusterConfig,
  type ClusterStatus,
  changesSince,
  control,
  DataFolder,
  detach,
  lockServicesIn,
  metadataStoreOf,
  missingPeer,
  nodesLeftOut,
  outgoingRemark,
  ownTransport,
  type ProcessEvent,
  type ProcessStatus,
  planCluster,
  reachRemarks,
  readClusterRecord,
  readTopology,
  remarksOf,
  rememberedLine,
  replicatesIn,
  roles,
  runSupervisor,
  type Supervisor,
  systemPorts,
} from "@stamp/cluster";
import { inWords, readPair } from "@stamp/ports-node";
import type { Command } from "commander";
import { CommandError, configOf, exitCodes, orphansRun, root, withConfig } from "../context.ts";
import { endProcess } from "../exit.ts";
import { copiesIn, copyText, newestCopy, restoreCommand } from "../health/newest-copy.ts";
import { connectionLines, endpointLines, processTable } from "../print.ts";
import { say, sayUnlessUnread, warn } from "../say.ts";
import { hasSeveral, severalIn, stampsMax, stampsMin } from "../stamps/several.ts";
import { deleteStamps, stopStamps } from "../stamps/stamps-commands.ts";
import { upStamps } from "../stamps/up-stamps.ts";
import { topLevel } from "../top-level.ts";
import { number, secondsMax, whole } from "../values.ts";
import { addEmulatorFlags } from "./emulator-flags.ts";
import { checkRoleSettings, unknownSettings } from "./role-settings.ts";
import { checkInitFile, initError, refuseInitOfSeveral, UpInit, upConfigOf } from "./up-init.ts";

const tellWaitingEveryMs = 2_000;
const pollMs = 100;

export function addUp(program: Command): void {
  const up = topLevel(program, "up")
    .option("-d, --detach", "in the background: see it with `stamp status`, stop it with `stamp down`")
    .option(
      "--stamps <number>",
      "2 to 4 small stamps and a location service, each in a folder of its own below the data folder",
      whole(stampsMin, stampsMax),
    )
    .option(
      "--init [file]",
      "make what FILE says before anything is served: accounts, containers, seed data (env: STAMP_INIT_FILE; docs/guides/init.md). " +
        "Without FILE, with --host: make a new stamp; said once, on one host, at its very first start",
    )
    .option("--print-logs", "without -d: also print what the processes log, a line of JSON each")
    .option("--ready-timeout-s <seconds>", "with -d: how long to wait until everything is ready", number(0.001, secondsMax), "60")
    .action(async (_options, command: Command) => {
      const { detach: background, readyTimeoutS, stamps } = command.opts<{ detach?: boolean; readyTimeoutS: string; stamps?: string }>();
      const readySeconds = Number(readyTimeoutS);
      if (printsLogs(command) && (background === true || stamps !== undefined))
        throw new CommandError("--print-logs is for a stamp in the foreground: leave out -d and --stamps", exitCodes.usage);
      const config = upConfigOf(command);
      if (stamps !== undefined || hasSeveral(config)) {
        refuseInitOfSeveral(config, command);
        const count = stamps === undefined ? undefined : Number(stamps);
        await upStamps(command, count, { background: background === true, readyTimeoutMs: readySeconds * 1_000 });
        return;
      }
      checkHost(config, isFirst(command));
      checkStore(config);
      for (const line of await unknownSettings(process.env)) warn(`stamp: ${line}`);
      await checkRoleSettings(config);
      checkCertificate(config);
      checkPeers(config);
      await checkInitFile(config);
      tellRemembered(config);
      if (background === true) await upDetached(command, readySeconds * 1_000);
      else await upForeground(command);
    });
  withConfig(up);
  addEmulatorFlags(up);

  withConfig(topLevel(program, "down"), ["dataDir"]).action(async (_options, command: Command) => {
    const config = configOf(command, { withoutRecord: true });
    const several = severalIn(config);
    if (several !== undefined) {
      await stopStamps(several);
      return;
    }
    const folder = new DataFolder(config.dataDir);
    const { supervisor, orphans } = folder.running();
    if (orphans.length > 0) {
      say(`the supervisor of ${config.dataDir} is gone; stopping what it left: pid ${orphans.map(({ pid }) => pid).join(", ")}`);
      await folder.stopOrphans(config.stopTimeoutMs);
      say("stopped");
      return;
    }
    if (supervisor === undefined) {
      say(`no cluster runs on ${config.dataDir}`);
      return;
    }
    await control(folder.control, { do: "stop" });
    say("stopped");
  });

  withConfig(topLevel(program, "reset").option("--yes", "do it"), ["dataDir"]).action(async (_options, command: Command) => {
    const config = configOf(command, { withoutRecord: true });
    const several = severalIn(config);
    if (several !== undefined) {
      checkYes(command, config.dataDir);
      deleteStamps(several);
      say(`deleted what was stored in ${config.dataDir}`);
      return;
    }
    const folder = new DataFolder(config.dataDir);
    const { supervisor, orphans } = folder.running();
    if (orphans.length > 0) throw new CommandError(orphansRun(config, orphans));
    if (supervisor !== undefined) throw new CommandError(`a cluster runs on ${config.dataDir}; stop it first: ./stamp down`);
    if (!existsSync(join(config.dataDir, "stamp.json")) && !existsSync(join(config.dataDir, "run"))) {
      throw new CommandError(`${config.dataDir} holds no stamp`);
    }
    checkYes(command, config.dataDir);
    // A start in this moment must not begin beside what is deleted.
    await folder.whileHeld(() => deleteStored(config.dataDir));
    removeIfEmpty(join(config.dataDir, "run"));
    say(`deleted what was stored in ${config.dataDir}`);
  });
}

function checkYes(command: Command, dataDir: string): void {
  if (command.opts<{ yes?: boolean }>().yes === true) return;
  throw new CommandError(`this deletes everything stored in ${dataDir}; say --yes`, exitCodes.usage);
}

/** Deletes what a stamp makes there; stamp.json last, so that an interrupted reset does not look like a new folder. */
function deleteStored(dataDir: string): void {
  const ours = new RegExp(
    `^(logs|cluster\\.json(\\.new)?|cluster-secret(\\.next|\\.previous)?|master-key(\\.id|\\.next|\\.previous)?|(${roles.join("|")})-\\d+)$`,
  );
  for (const name of readdirSync(dataDir).filter((each) => ours.test(each))) {
    const path = join(dataDir, name);
    // The folder of an extent node may be a link to its disk (prepare-host.ts).
    if (lstatSync(path).isSymbolicLink() && existsSync(path)) rmSync(realpathSync(path), { recursive: true, force: true });
    rmSync(path, { recursive: true, force: true });
  }
  const run = join(dataDir, "run");
  // These files belong to the process that holds the folder, or to one that waits for it.
  for (const name of readdirSync(run)) if (!name.startsWith("supervisor.json")) rmSync(join(run, name), { recursive: true, force: true });
  rmSync(join(dataDir, "stamp.json"), { force: true });
}

/** Removes a folder, unless a start has put something into it meanwhile. */
function removeIfEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST", "ENOENT"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}

/** Tells what this start takes from the last one, what it changes, and what a person may not expect of it. */
function tellRemembered(config: ClusterConfig): void {
  // Nothing is started beside a cluster that runs: its supervisor says so.
  if (new DataFolder(config.dataDir).supervisor() !== undefined) return;
  const record = readClusterRecord(config.dataDir);
  const remembered = rememberedLine(record, config);
  if (remembered !== undefined) say(remembered);
  for (const line of changesSince(record, config)) say(line);
  for (const line of remarks(config)) warn(`stamp: ${line}`);
}

/** Returns the extent nodes with a disk in the folder that this start leaves out. */
function leftOutBy(config: ClusterConfig): string[] {
  const known = readClusterRecord(config.dataDir);
  const planned = planCluster(config, known).processes.map(({ name }) => name);
  return nodesLeftOut(config.dataDir, planned, known?.retired ?? []);
}

function remarks(config: ClusterConfig): string[] {
  const known = readClusterRecord(config.dataDir);
  const retired = known?.retired ?? [];
  const plan = planCluster(config, known);
  const planned = plan.processes.map(({ name }) => name);
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) => all.flatMap((one) => (one.internal ? [] : [one.address])));
  const outgoing = outgoingRemark([...plan.httpPorts.keys(), ...plan.internalPorts.keys()], systemPorts());
  return [...remarksOf(config, planned, retired), ...reachRemarks(config, plan, addresses), ...(outgoing === undefined ? [] : [outgoing])];
}

const printsLogs = (command: Command): boolean => command.opts<{ printLogs?: boolean }>().printLogs === true;

/** True if this start is to make a new stamp on several hosts. */
const isFirst = (command: Command): boolean => command.opts<{ init?: boolean }>().init === true;

function checkHost(config: ClusterConfig, isFirst: boolean): void {
  if (isFirst && config.host === undefined)
    throw new CommandError("--init is for a stamp of several hosts (--host); one host makes its stamp by itself", exitCodes.usage);
  const begins = isFirst ? hostThatBegins(config) : undefined;
  if (begins !== undefined)
    throw new CommandError(`--init: say it on host ${begins}; its lock service is the first, and begins the stamp`, exitCodes.usage);
  if (config.topology === undefined || config.host !== undefined) return;
  const hosts = Object.keys(readTopology(config.topology).hosts).join(", ");
  throw new CommandError(`which host is this? --host NAME, one of ${hosts} (${config.topology})`, exitCodes.usage);
}

/** Returns the host of the first lock service, which alone begins a stamp; undefined: it is this one, or any may. */
function hostThatBegins(config: ClusterConfig): string | undefined {
  if (metadataStoreOf(config) !== "replicated") return undefined;
  const { lockService, elsewhere } = planCluster(config, readClusterRecord(config.dataDir));
  const [first] = lockService.split(",");
  return elsewhere.find(({ grpc }) => grpc === first)?.host;
}

/** Refuses a store that is not the folder's: lock services would not start on it, and the record would keep the wrong number. */
function checkStore(config: ClusterConfig): void {
  const { dataDir } = config;
  if (metadataStoreOf(config) === "replicated" || !replicatesIn(dataDir)) return;
  const way = config.topology === undefined ? `--lock-services ${lockServicesIn(dataDir)}` : `as many in ${config.topology} as before`;
  throw new CommandError(
    `the metadata in ${dataDir} are replicated by its lock services, and there is no way back to ${config.lockServices === 1 ? "one" : "etcd"}: ` +
      `${way}, without another metadataStore (docs/guides/metadata.md)`,
    exitCodes.usage,
  );
}

/** Refuses a configuration in which each process would die at its start, again and again. */
function checkPeers(config: ClusterConfig): void {
  const missing = missingPeer(config, planCluster(config, readClusterRecord(config.dataDir)).processes);
  if (missing !== undefined) throw new CommandError(missing, exitCodes.usage);
}

/** Refuses a certificate with which each front-end would die at its start, again and again. */
function checkCertificate({ tlsCert, tlsKey }: ClusterConfig): void {
  if (tlsCert === undefined || tlsKey === undefined) return;
  try {
    readPair({ certificatePath: tlsCert, keyPath: tlsKey });
  } catch (error) {
    const why = error instanceof FailureError ? error.failure.message : inWords(error);
    throw new CommandError(`tlsCert, tlsKey: ${why}`, exitCodes.usage);
  }
}

async function upForeground(command: Command): Promise<void> {
  const config = upConfigOf(command);
  const transport = ownTransport(config);
  const startMs = performance.now();
  let stopping = false;
  const running = await runSupervisor({
    config,
    root,
    transport,
    initialise: isFirst(command),
    onEvent: tellEvent,
    ...(printsLogs(command) ? { onLine: (line: string) => sayUnlessUnread(line) } : {}),
    onStopping: (why) => {
      stopping = true;
      say(`\nstopping (${why}) …`);
    },
  });
  say(`starting ${running.supervisor.plan.processes.length} processes …`);
  const init = new UpInit(config);
  init.begin(config, running.supervisor.plan.lockService);
  await untilReady(
    config,
    () => running.supervisor.status(),
    () => stopping || init.failure(running.supervisor.status()) !== undefined,
    Number.POSITIVE_INFINITY,
  );
  const failure = init.failure(running.supervisor.status());
  await init.end();
  if (!stopping && failure !== undefined) {
    await running.stop();
    await transport.close();
    throw initError(failure);
  }
  if (!stopping) tellReady(config, running.supervisor.status(), startMs, "Ctrl-C stops it; the data stay.");
  await running.stopped;
  await transport.close();
  say("stopped");
  await endProcess();
}

/** True if nothing is served before a person acts. */
const isStoreLost = ({ processes }: Pick<ClusterStatus, "processes">): boolean =>
  processes.some(({ role, state }) => role === "lock-service" && (state === "empty" || state === "damaged"));

/** True if a lock service finds an empty etcd: another host may be about to make the stamp. */
const waitsForStamp = ({ processes }: Pick<ClusterStatus, "processes">): boolean =>
  processes.some(({ role, waitingFor }) => role === "lock-service" && waitingFor.some((each) => each.startsWith("a stamp: ")));

/** Tells how a lost metadata store is put back; of several hosts, that an empty one may be new. */
async function tellLostStore(status: ClusterStatus, config: ClusterConfig): Promise<void> {
  const { topology } = config;
  const host = hostThatBegins(config) ?? config.host;
  const { dataDir } = status;
  if (topology !== undefined)
    warn(
      `stamp: the metadata store holds no stamp. If this stamp is new, start one host so, once: ./stamp up --host ${host} --init. ` +
        "If it is not, its metadata are lost: do not say --init",
    );
  const copy = newestCopy({ processes: [], copies: await copiesIn(dataDir) });
  const store = metadataStoreOf(config);
  const target = store === "leveldb" ? "alone" : store === "etcd" ? "etcd" : "replicated";
  warn(
    copy === undefined
      ? "stamp: no copy of the metadata was found on the extent nodes of this folder (docs/guides/metadata.md)"
      : `stamp: ${copyText(copy, Date.now())}.\nPut it back: ${restoreCommand(copy, dataDir, target, [])}`,
  );
}

async function upDetached(command: Command, readyTimeoutMs: number): Promise<void> {
  const config = upConfigOf(command);
  const startMs = performance.now();
  let status = await detach(config, root, isFirst(command));
  say(`starting ${status.processes.length} processes in the background …`);
  const init = new UpInit(config);
  init.begin(config, status.lockService);
  process.once("SIGINT", () => {
    warn(`\nleft. The cluster goes on starting: ./stamp status; stop it: ./stamp down`);
    void endProcess(exitCodes.left);
  });
  const path = new DataFolder(config.dataDir).control;
  const asking = setInterval(() => {
    control(path, { do: "status" }).then(
      (answer) => {
        status = answer;
      },
      () => {},
    );
  }, pollMs);
  const isReady = await untilReady(
    config,
    () => status,
    // Waiting does not bring back what is lost.
    () => isStoreLost(status) || init.failure(status) !== undefined,
    readyTimeoutMs,
  );
  clearInterval(asking);
  const failure = init.failure(status);
  await init.end();
  if (failure !== undefined) {
    await control(path, { do: "stop" });
    throw initError(failure);
  }
  if (!isReady) {
    warn(processTable(status));
    if (isStoreLost(status)) {
      await tellLostStore(status, config);
      throw new CommandError("the metadata store is lost or damaged, and nothing is served until it is put back", exitCodes.notReady);
    }
    throw new CommandError(
      `not ready after ${readyTimeoutMs / 1_000} s; it goes on trying. Logs: ${join(config.dataDir, "logs")}; stop it: ./stamp down`,
      exitCodes.notReady,
    );
  }
  tellReady(config, status, startMs, `stop it:  ./stamp down   see it:  ./stamp status`);
}

const endOf = ({ lastExit }: ProcessStatus): string => (lastExit === "" ? "" : ` (ended with ${lastExit})`);

/** Prints which processes wait for what, until all are ready; false: the time is over. */
async function untilReady(config: ClusterConfig, status: () => ClusterStatus, gaveUp: () => boolean, timeoutMs: number): Promise<boolean> {
  const startMs = performance.now();
  let tellAtMs = startMs + tellWaitingEveryMs;
  let toldLast = "";
  let toldLost = false;
  for (;;) {
    const now = status();
    if (now.ready || gaveUp()) return now.ready;
    if (performance.now() - startMs > timeoutMs) return false;
    if (performance.now() > tellAtMs) {
      tellAtMs = performance.now() + tellWaitingEveryMs;
      const waiting = now.processes
        .filter((each) => !each.ready)
        .map(
          (each) =>
            `${each.name} ${each.waitingFor.length > 0 ? `waits for ${each.waitingFor.join(", ")}` : `is ${each.state}${endOf(each)}`}`,
        )
        .join("; ");
      if (waiting !== toldLast) {
        say(`  ${waiting}`);
        const lost = isStoreLost(now) || waitsForStamp(now);
        if (lost && !toldLost) await tellLostStore(now, config);
        toldLost ||= lost;
      }
      toldLast = waiting;
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

function tellEvent(supervisor: Supervisor, name: string, event: ProcessEvent): void {
  if (event.kind === "exited" && !event.asked) {
    say(`${name} ended unasked (${event.how}); starting it again`);
    const said = supervisor.tail(name, 8);
    if (said !== "" && !supervisor.ready) say(said.replaceAll(/^/gm, "    "));
  }
  if (event.kind === "started" && supervisor.process(name)?.restarts) say(`${name} runs again, pid ${event.pid}`);
}

/** Tells that what was started serves. "Ready" is only a cluster of which no node is left out: `up` ends with another code without one. */
function tellReady(config: ClusterConfig, status: ClusterStatus, startMs: number, how: string): void {
  const leftOut = leftOutBy(config);
  const took = `after ${((performance.now() - startMs) / 1000).toFixed(1)} s`;
  const conclusion =
    leftOut.length === 0 ? `ready ${took}` : `${status.processes.length} processes serve ${took}; NOT STARTED: ${leftOut.join(", ")}`;
  if (leftOut.length > 0) process.exitCode = exitCodes.leftOut;
  say(`
${processTable(status)}

${conclusion}

Endpoints
${endpointLines(status)}

${connectionLines(status)}

data:  ${status.dataDir}
${how}`);
  // Again, because the first time is far above now.
  for (const line of remarks(config)) warn(`stamp: ${line}`);
}
