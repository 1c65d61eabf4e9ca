/** Starts a supervisor that goes on when this process ends. */
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { programOf } from "../bundle/bundle.ts";
import type { ClusterConfig } from "../config.ts";
import type { LocationConfig } from "../location/plan-location.ts";
import { DataFolder } from "../record/data-folder.ts";
import { StartError } from "../start-error.ts";
import type { ClusterStatus } from "../status.ts";
import { control } from "./control.ts";

/** Resolves when it takes commands; throws StartError with what it said when it could not start. */
export function detach(config: ClusterConfig, root: string, initialise = false): Promise<ClusterStatus> {
  const environment = { STAMP_CLUSTER: JSON.stringify(config), STAMP_CLUSTER_INIT: String(initialise) };
  return startDaemon(config.dataDir, root, environment);
}

/** Starts a location service and its lock service in the background. */
export function detachLocation(config: LocationConfig, root: string): Promise<ClusterStatus> {
  return startDaemon(config.dataDir, root, { STAMP_LOCATION: JSON.stringify(config) });
}

async function startDaemon(dataDir: string, root: string, environment: Readonly<Record<string, string>>): Promise<ClusterStatus> {
  const folder = new DataFolder(dataDir);
  folder.prepare();
  const path = join(folder.logs, "supervisor.log");
  const log = openSync(path, "a", 0o600);
  const saidBefore = statSync(path).size;
  const { path: program, compiled } = programOf(root, "supervisor");
  const child = spawn(process.execPath, [program], {
    cwd: root,
    detached: true,
    stdio: ["ignore", log, log],
    env: { NODE_COMPILE_CACHE: compiled, ...process.env, ...environment, STAMP_ROOT: root },
  });
  closeSync(log);
  let ended = false;
  child.once("exit", () => {
    ended = true;
  });
  child.once("error", () => {
    ended = true;
  });
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (ended) {
      throw new StartError(readFileSync(path).subarray(saidBefore).toString("utf8").trim() || "the supervisor ended without a word");
    }
    if (folder.supervisor()?.pid === child.pid) {
      const status = await control(folder.control, { do: "status" }).catch(() => undefined);
      if (status !== undefined) {
        child.unref();
        return status;
      }
    }
  }
}
