/**
 * Makes the bundle for the next start, once this one is over: a process of its own, with low priority, so that no start waits for it. The
 * supervisor itself touches no file of the bundle, and no failure reaches it.
 */
import { spawn } from "node:child_process";
import type { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { damagedBundle, freshBundle, isOff, isRepository } from "./bundle.ts";

const lookEveryMs = 2_000;
/** A process that makes a bundle for longer is ended: on a busy machine it takes minutes. */
const makingMaxMs = 10 * 60_000;
const toldMax = 500;

/** Ends with the signal, which also ends a process that makes a bundle. Never rejects; `warn` is told why a bundle is not used or not made. */
export async function makeBundleWhenReady(
  root: string,
  isReady: () => boolean,
  signal: AbortSignal,
  warn: (why: string) => void,
): Promise<void> {
  try {
    if (isOff() || !isRepository(root)) return;
    while (!signal.aborted && !isReady()) await sleep(lookEveryMs, undefined, { signal, ref: false }).catch(() => {});
    if (signal.aborted || freshBundle(root, "digests") !== undefined) return;
    const damaged = damagedBundle(root);
    if (damaged !== undefined)
      warn(
        `processes start from their sources until the bundle in ${damaged} is made again: files of it are missing, damaged or can't be read`,
      );
    const program = join(root, "packages/cluster/src/bundle/main.ts");
    const child = spawn(process.execPath, [program, root], { stdio: ["ignore", "ignore", "pipe"], signal, timeout: makingMaxMs });
    child.unref();
    (child.stderr as Socket).unref();
    let said = "";
    child.stderr?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString("utf8")).slice(0, toldMax);
    });
    child.once("error", (error) => {
      if (!signal.aborted) warn(noBundle(error.message));
    });
    child.once("close", () => {
      if (!signal.aborted && said !== "") warn(said.trim());
    });
  } catch (error) {
    warn(noBundle((error as Error).message));
  }
}

export const noBundle = (why: string): string => `the processes start from their sources, because no bundle could be made: ${why}`;
