/** Starts a supervisor that goes on when this process ends. */
import { spawn } from "node:child_process";
import { appendFileSync, closeSync, openSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { programOf, type StartedProgram, sourceProgramOf } from "../bundle/bundle.ts";
import type { ClusterConfig } from "../config.ts";
import type { LocationConfig } from "../location/plan-location.ts";
import { DataFolder } from "../record/data-folder.ts";
import { StartError } from "../start-error.ts";
import type { ClusterStatus } from "../status.ts";
import { control } from "./control.ts";

/** Starts a supervisor in the background. Resolves when it takes commands; throws StartError with its error text. */
export function detach(config: ClusterConfig, root: string, initialise = false): Promise<ClusterStatus> {
  const environment = { STAMP_CLUSTER: JSON.stringify(config), STAMP_CLUSTER_INIT: String(initialise) };
  return startDaemon(config.dataDir, root, environment);
}

/** Starts a location service and its lock service in the background. */
export function detachLocation(config: LocationConfig, root: string): Promise<ClusterStatus> {
  return startDaemon(config.dataDir, root, { STAMP_LOCATION: JSON.stringify(config) });
}

/** Exit code of a daemon that has told why it can't start. */
export const toldExitCode = 69;

async function startDaemon(dataDir: string, root: string, environment: Readonly<Record<string, string>>): Promise<ClusterStatus> {
  const folder = new DataFolder(dataDir);
  folder.prepare();
  const log = join(folder.logs, "supervisor.log");
  const start = (program: StartedProgram) => startProgram(program, folder, log, { ...environment, STAMP_ROOT: root });
  const program = programOf(root, "supervisor");
  const first = await start(program);
  if (first.status !== undefined) return first.status;
  if (program.bundle === undefined || first.code === toldExitCode) throw new StartError(first.said);
  // The program may be damaged.
  appendFileSync(log, `stamp: the supervisor starts from its source, because it did not start from ${program.path}\n`);
  const second = await start(sourceProgramOf(root, "supervisor"));
  if (second.status !== undefined) return second.status;
  throw new StartError(second.said);
}

type Outcome = { readonly status: ClusterStatus } | { readonly status?: undefined; readonly code: number | null; readonly said: string };

/** Resolves when the daemon takes commands, or has ended. */
async function startProgram(
  program: StartedProgram,
  folder: DataFolder,
  path: string,
  environment: Readonly<Record<string, string>> & { readonly STAMP_ROOT: string },
): Promise<Outcome> {
  const log = openSync(path, "a", 0o600);
  const saidBefore = statSync(path).size;
  const child = spawn(process.execPath, [program.path], {
    cwd: environment.STAMP_ROOT,
    detached: true,
    stdio: ["ignore", log, log],
    env: { ...process.env, NODE_COMPILE_CACHE: program.compiled, ...environment },
  });
  closeSync(log);
  let ended: { readonly code: number | null } | undefined;
  child.once("exit", (code) => {
    ended = { code };
  });
  child.once("error", () => {
    ended = { code: null };
  });
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (ended !== undefined) {
      const said = readFileSync(path).subarray(saidBefore).toString("utf8").trim() || "the supervisor ended without a word";
      return { code: ended.code, said };
    }
    if (folder.supervisor()?.pid === child.pid) {
      const status = await control(folder.control, { do: "status" }).catch(() => undefined);
      if (status !== undefined) {
        child.unref();
        return { status };
      }
    }
  }
}
