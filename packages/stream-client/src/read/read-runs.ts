/**
 * Reads many whole blocks in order. Those that lie one behind another in an extent are asked for in one call, up to a bound: a call costs
 * the same for 16 KiB as for 256. What such a call does not give (the replica is not sealed and does not know yet that a block is
 * acknowledged, or fails) is read block by block.
 */
import { FailureError, type Outcome, ok } from "@stamp/base";
import { frameHeaderBytes } from "@stamp/extent";
import { fromWire } from "@stamp/wire";
import type { Place, ReadOptions } from "../types.ts";
import type { ExtentReader } from "./extent-reader.ts";

type Reader = Pick<ExtentReader, "read" | "readBlocksOnce">;

const runBytesMax = 256 * 1024;
const windowBytesDefault = 512 * 1024;

/**
 * Yields the payload of each block, in order; about `windowBytes` are asked for ahead. Each is borrowed from the message it came in: copy when
 * keeping a small part of it. Throws FailureError. Leaving early cancels what was asked for.
 */
export async function* readWholeBlocks(
  reader: Reader,
  blocks: readonly Place[],
  options: { readonly windowBytes?: number; readonly timeoutMs?: number } = {},
): AsyncGenerator<Uint8Array, void, void> {
  const { windowBytes = windowBytesDefault, timeoutMs = 10_000 } = options;
  const stop = new AbortController();
  const runs = runsOf(blocks);
  const ahead: { readonly bytes: number; readonly answer: Promise<Outcome<readonly Uint8Array[]>> }[] = [];
  let aheadBytes = 0;
  let upcoming = runs.next();
  try {
    for (;;) {
      while (!upcoming.done && (ahead.length === 0 || aheadBytes + bytesOf(upcoming.value) <= windowBytes)) {
        const bytes = bytesOf(upcoming.value);
        ahead.push({ bytes, answer: readRun(reader, upcoming.value, { timeoutMs, signal: stop.signal }) });
        aheadBytes += bytes;
        upcoming = runs.next();
      }
      const first = ahead.shift();
      if (first === undefined) return;
      const payloads = await first.answer;
      if (!payloads.ok) throw new FailureError(payloads.failure);
      aheadBytes -= first.bytes;
      yield* payloads.value;
    }
  } finally {
    stop.abort();
  }
}

const bytesOf = (run: readonly Place[]): number => run.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);

/** Yields runs of blocks that lie side by side in one extent, with only headers between them. */
function* runsOf(blocks: readonly Place[]): Generator<readonly Place[], undefined> {
  let run: Place[] = [];
  let bytes = 0;
  for (const block of blocks) {
    const last = run.at(-1);
    if (last !== undefined && (bytes + block.lengthBytes > runBytesMax || !follows(last, block))) {
      yield run;
      run = [];
      bytes = 0;
    }
    run.push(block);
    bytes += block.lengthBytes;
  }
  if (run.length > 0) yield run;
}

const follows = (one: Place, next: Place): boolean =>
  one.extentId === next.extentId && one.offsetBytes + one.lengthBytes + frameHeaderBytes(next.lengthBytes) === next.offsetBytes;

async function readRun(reader: Reader, run: readonly Place[], options: ReadOptions): Promise<Outcome<readonly Uint8Array[]>> {
  const payloads = run.length > 1 ? await readTogether(reader, run, options) : [];
  for (const alone of await Promise.all(run.slice(payloads.length).map((block) => reader.read(block, options)))) {
    if (!alone.ok) return alone;
    payloads.push(alone.value);
  }
  return ok(payloads);
}

/** Returns the payloads of the first blocks that came. */
async function readTogether(reader: Reader, run: readonly Place[], options: ReadOptions): Promise<Uint8Array[]> {
  const { extentId, offsetBytes, lengthBytes } = run[0] as Place;
  const answer = await reader.readBlocksOnce(extentId, offsetBytes - frameHeaderBytes(lengthBytes), bytesOf(run), options);
  if (!answer.ok) return [];
  const { payload, offsetsBytes } = answer.value;
  const isWhole = (block: Place, at: number): boolean =>
    payload[at]?.length === block.lengthBytes && fromWire(offsetsBytes[at] ?? 0n) === block.offsetBytes;
  const differs = run.findIndex((block, at) => !isWhole(block, at));
  return payload.slice(0, differs < 0 ? run.length : differs);
}
