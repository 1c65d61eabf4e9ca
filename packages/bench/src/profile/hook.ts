/**
 * Loaded before a process of a profiled cluster (`--import`): each SIGUSR2 begins or ends a profile of the main thread by V8's sampling
 * profiler. At the end the profile is written to the folder that `BENCH_PROFILES` names, as PID.json.
 */
import { renameSync, writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import { join } from "node:path";
import { isMainThread } from "node:worker_threads";

const folder = process.env.BENCH_PROFILES;
let session: Session | undefined;

function begin(): Session {
  const begun = new Session();
  begun.connect();
  begun.post("Profiler.enable");
  begun.post("Profiler.start");
  return begun;
}

function end(begun: Session, into: string): void {
  begun.post("Profiler.stop", (error, result) => {
    const path = join(into, `${process.pid}.json`);
    // A reader that waits for the file never sees half of it.
    writeFileSync(`${path}.part`, JSON.stringify(error === null ? result.profile : { nodes: [] }));
    renameSync(`${path}.part`, path);
    begun.disconnect();
  });
}

if (isMainThread && folder !== undefined) {
  process.on("SIGUSR2", () => {
    if (session === undefined) session = begin();
    else {
      end(session, folder);
      session = undefined;
    }
  });
}
