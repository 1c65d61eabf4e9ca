/** `stamp up --stamps N`: several small stamps and a location service on one machine. */
import { existsSync, rmSync, symlinkSync } from "node:fs";
import { join, relative } from "node:path";
import {
  type ClusterStatus,
  control,
  DataFolder,
  detach,
  detachLocation,
  LocationSupervisor,
  ownTransport,
  planCluster,
  type Running,
  readClusterRecord,
  runSupervisor,
  secretFilesOf,
  stampSecretsIn,
  superviseUntilStopped,
} from "@stamp/cluster";
import { credentialOf, GrpcTransport, inWords } from "@stamp/ports-node";
import { LocationService } from "@stamp/wire";
import type { Command } from "commander";
import { checkRoleSettings, unknownSettings } from "../cluster/role-settings.ts";
import { root } from "../context.ts";
import { CommandError, endProcess, exitCodes } from "../exit.ts";
import { connectionLines, endpointLines, processTable } from "../print.ts";
import { withProgress } from "../progress.ts";
import { say, warn } from "../say.ts";
import { foldersOf, locationIn, type OneStamp, planSeveral, rememberSeveral, type SeveralStamps } from "./several.ts";

const pollMs = 200;
const addTimeoutMs = 5_000;

export interface UpOptions {
  readonly background: boolean;
  readonly readyTimeoutMs: number;
}

export async function upStamps(command: Command, count: number | undefined, { background, readyTimeoutMs }: UpOptions): Promise<void> {
  const several = planSeveral(command, count);
  const { stamps } = several;
  for (const line of await unknownSettings(process.env)) warn(`stamp: ${line}`);
  for (const { config } of stamps) await checkRoleSettings(config);
  const startMs = performance.now();
  say(`starting ${stamps.length} stamps and a location service${background ? " in the background" : ""} …`);
  rememberSeveral(several);
  const running = background ? undefined : await startHere(several);
  if (background) await startDetached(several);
  const what = `starting ${stamps.length} stamps`;
  const ready = async (): Promise<readonly ClusterStatus[]> => {
    const statuses = await untilReady(several, () => running?.isStopping() === true, readyTimeoutMs);
    await addAll(several, performance.now() + readyTimeoutMs);
    return statuses;
  };
  const afterwards = `They go on starting: ./stamp status; stop them: ./stamp down`;
  const started = background ? withProgress({ what, afterwards }, ready) : ready();
  const statuses = await started.catch((error: unknown) => {
    // Ctrl-C while they start: what was not ready then is no failure.
    if (running?.isStopping() === true) return [];
    throw error;
  });
  if (statuses.length > 0) {
    say(readyText(several, statuses, (performance.now() - startMs) / 1_000));
    say(background ? `stop them:  ./stamp down   see them:  ./stamp status` : "Ctrl-C stops them; the data stay.");
  }
  if (running === undefined) return;
  await running.stopped;
  say("stopped");
  await endProcess();
}

interface RunningHere {
  readonly stopped: Promise<unknown>;
  isStopping(): boolean;
}

/** Starts everything in this process. If one part can't start, the others are stopped again. */
async function startHere({ stamps, location }: SeveralStamps): Promise<RunningHere> {
  let stopping = false;
  const onStopping = (why: string): void => {
    if (!stopping) say(`\nstopping (${why}) …`);
    stopping = true;
  };
  const running: Running[] = [];
  try {
    for (const { config } of stamps) {
      // A signal between two starts reaches only the supervisors that hear it already.
      if (!stopping) running.push(await runSupervisor({ config, root, transport: ownTransport(config), onStopping }));
    }
    const supervisor = new LocationSupervisor({ config: location, root, transport: ownTransport(location) });
    if (!stopping) running.push(await superviseUntilStopped(supervisor, onStopping));
  } catch (error) {
    await Promise.all(running.map((each) => each.stop()));
    throw error;
  }
  return { stopped: Promise.all(running.map(({ stopped }) => stopped)), isStopping: () => stopping };
}

async function startDetached(several: SeveralStamps): Promise<void> {
  const started: string[] = [];
  try {
    for (const { config } of several.stamps) {
      await detach(config, root);
      started.push(config.dataDir);
    }
    await detachLocation(several.location, root);
  } catch (error) {
    for (const dataDir of started) await control(new DataFolder(dataDir).control, { do: "stop" }).catch(() => {});
    throw error;
  }
}

/** Waits until everything is ready. Returns the status of each stamp, and last that of the location service. */
async function untilReady(several: SeveralStamps, gaveUp: () => boolean, timeoutMs: number): Promise<ClusterStatus[]> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const asked = await Promise.allSettled(foldersOf(several).map((dataDir) => control(new DataFolder(dataDir).control, { do: "status" })));
    const statuses = asked.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    if (statuses.length === asked.length && statuses.every(({ ready }) => ready)) return statuses;
    if (gaveUp() || performance.now() > endMs) {
      warn(statuses.map((each) => `${each.dataDir}\n${processTable(each)}`).join("\n\n"));
      throw new CommandError(`not ready after ${timeoutMs / 1_000} s; logs: ${several.dataDir}/*/logs`, exitCodes.notReady);
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
}

/** Makes the stamps known to the location service. Repeated at each start: addresses may have changed. */
async function addAll(several: SeveralStamps, endMs: number): Promise<void> {
  const { at, secretFile } = locationIn(several);
  const transport = new GrpcTransport({ credential: () => credentialOf({ clusterSecretFile: secretFile }) });
  try {
    for (const stamp of several.stamps) {
      linkSecret(several, stamp);
      const { processes, lockService } = planCluster(stamp.config, readClusterRecord(stamp.config.dataDir));
      const doors = processes.flatMap(({ role, grpc }) => (role === "front-end" ? [grpc] : []));
      const request = { name: stamp.name, location: stamp.location, lockService, secret: stamp.name, doors };
      for (;;) {
        const added = await transport.client(at, LocationService).addStamp(request, { timeoutMs: addTimeoutMs });
        if (added.ok) break;
        const isFinal = added.failure.reason === "conflict" || added.failure.code === "invalidArgument";
        if (isFinal || performance.now() > endMs) throw new CommandError(`stamp ${stamp.name} was not added: ${added.failure.message}`);
        await new Promise((resolve) => setTimeout(resolve, pollMs));
      }
    }
  } finally {
    await transport.close();
  }
}

/** Links the stamp's secret into the location service's folder, so that a rotation reaches both. */
function linkSecret({ location }: SeveralStamps, { name, config }: OneStamp): void {
  const folder = stampSecretsIn(location.dataDir);
  const path = join(folder, name);
  if (existsSync(path)) return;
  rmSync(path, { force: true });
  try {
    symlinkSync(relative(folder, secretFilesOf(config).current), path);
  } catch (error) {
    throw new CommandError(`the secret of stamp ${name} can't be given to the location service: ${inWords(error)}`);
  }
}

/** Returns the line about copies: accounts with a copy at a stamp are read there under another name (docs/guides/geo.md). */
const copyLine = ({ endpoints }: ClusterStatus): string => `  copies ${new URL(endpoints.blob).origin}/ACCOUNT-secondary, read only`;

function readyText(several: SeveralStamps, statuses: readonly ClusterStatus[], seconds: number): string {
  const { at, secretFile } = locationIn(several);
  const parts = several.stamps.map(({ name, location }, i) => {
    const status = statuses[i] as ClusterStatus;
    return `Stamp ${name} (location ${location}), data: ${status.dataDir}\n${endpointLines(status)}\n${copyLine(status)}\n${connectionLines(status)}`;
  });
  return [
    `\nready after ${seconds.toFixed(1)} s`,
    ...parts,
    `Location service ${at}, secret: ${secretFile}\n  ./stamp account create acme --location north --geo south`,
    "",
  ].join("\n\n");
}
