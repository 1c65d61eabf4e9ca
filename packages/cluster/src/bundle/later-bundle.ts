/**
 * Makes the bundle for the next start, once this one is over: a process of its own, with low priority, so that no start waits for it. One is
 * made at a time in a repository.
 */
import { spawn } from "node:child_process";
import { mkdirSync, rmdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { bundlesIn, freshBundle, isOff, isRepository } from "./bundle.ts";

const lookEveryMs = 2_000;
/** A process that makes a bundle for longer is ended: on a busy machine it takes minutes. */
const makingMaxMs = 10 * 60_000;

/** Ends with the signal, which also ends a process that makes a bundle. */
export async function makeBundleWhenReady(root: string, isReady: () => boolean, signal: AbortSignal): Promise<void> {
  if (isOff() || !isRepository(root)) return;
  while (!signal.aborted && !isReady()) await sleep(lookEveryMs, undefined, { signal, ref: false }).catch(() => {});
  if (signal.aborted || freshBundle(root) !== undefined || !takeTurn(root)) return;
  const program = join(root, "packages/cluster/src/bundle/main.ts");
  const child = spawn(process.execPath, [program, root], { stdio: "ignore", signal, timeout: makingMaxMs });
  child.unref();
  child.once("error", () => {});
  child.once("close", () => rmdirSync(turnIn(root)));
}

const turnIn = (root: string): string => join(bundlesIn(root), "making");

/** False while another process makes a bundle here. */
function takeTurn(root: string): boolean {
  const turn = turnIn(root);
  mkdirSync(bundlesIn(root), { recursive: true, mode: 0o700 });
  if (Date.now() - (statSync(turn, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > 2 * makingMaxMs) rmdirSync(turn);
  try {
    mkdirSync(turn);
    return true;
  } catch {
    return false;
  }
}
