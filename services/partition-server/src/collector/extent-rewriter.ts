/**
 * Copies what lives in extents that are mostly dead to the end of the blob data stream and has the rows refer to it there. Nothing is taken
 * away here: an extent that no row refers to any more is dropped by the pass that finds it so, and readers that hold the old places
 * read them through the stream manager's grace.
 *
 * Bytes first, then the row, in the row's order and as it then is: a crash in between leaves garbage, never a row without bytes. ETags and
 * times stay as they are, for the content does. Report rows of deposed primaries are rewritten as others are.
 */
import { type Failed, FailureError, type Outcome, ok, present, refused } from "@stamp/base";
import { type Decision, type Place, partitionStart } from "@stamp/objects";
import { sleep, type World } from "@stamp/ports";
import type { RangeEngine } from "../operations/engine.ts";
import { movedTo, placesOf } from "./reported-places.ts";

/** Copied before the row is changed. */
const stepBytes = 4 * 1024 * 1024;
const stepPlacesMax = 1_000;
const timeoutMs = 30_000;

export interface RewriteRequest {
  /** Keys of the rows that refer to each extent. */
  readonly extents: ReadonlyMap<number, readonly Uint8Array[]>;
  readonly bytesPerSecond: number;
  /** True if the rewriting is still wanted; asked before each step. */
  readonly wanted: () => boolean;
}

/** Gives how many bytes were copied. A row that can't be rewritten now keeps its extent until a later pass; the others go on. */
export async function rewriteExtents(world: World, engine: RangeEngine, request: RewriteRequest): Promise<Outcome<number>> {
  const { extents, bytesPerSecond, wanted } = request;
  let bytes = 0;
  for (const keys of extents.values()) {
    for (const key of keys) {
      for (;;) {
        if (!wanted()) return refused("aborted", "leaseLost", "the range is not served here any more");
        const step = await rewriteRow(engine, key, extents);
        if (!step.ok) {
          const { reason, message } = step.failure;
          world.logger.warn("a row still refers to an extent that is mostly garbage, tried again later", { reason, message });
          break;
        }
        bytes += step.value;
        if (step.value === 0) break;
        await sleep(world.clock, (step.value * 1_000) / bytesPerSecond);
      }
    }
  }
  return ok(bytes);
}

/** Rewrites some of the bytes that the row refers to in these extents. Returns the copied bytes; 0: nothing more to do. */
async function rewriteRow(engine: RangeEngine, key: Uint8Array, extents: ReadonlyMap<number, unknown>): Promise<Outcome<number>> {
  const row = await engine.read((view) => view.get(key), { background: true });
  if (!row.ok) return row;
  const step =
    row.value === undefined ? [] : stepOf(intact(placesOf({ key, value: row.value })).filter(({ extentId }) => extents.has(extentId)));
  if (step.length === 0) return ok(0);
  const copied = await engine.copyData(step, timeoutMs);
  if (!copied.ok) return copied;
  const moved = step.map((from, i) => ({ from, to: present(copied.value[i], "a place for each that was copied") }));
  const changed = await engine.transact(
    [partitionStart(key) ?? key],
    async (view) => {
      const now = await view.get(key);
      if (!now.ok) return now;
      if (now.value === undefined) return ok(nothing);
      for (const { to } of moved) if (!engine.mayReferTo(to)) return badPlace(to);
      const value = intact(movedTo({ key, value: now.value }, (place) => elsewhere(moved, place)));
      return ok(value === now.value ? nothing : { ...nothing, writes: [{ kind: "put", key, value }] });
    },
    { timeoutMs, pipelined: false },
  );
  return changed.ok ? ok(step.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0)) : changed;
}

const nothing: Decision = { result: { case: "done" }, writes: [] };

const badPlace = ({ extentId }: Place): Failed => refused("aborted", "badPlace", `extent ${extentId} left blob data meanwhile`);

function intact<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new FailureError(outcome.failure);
  return outcome.value;
}

function stepOf(places: readonly Place[]): readonly Place[] {
  const step: Place[] = [];
  let bytes = 0;
  for (const place of places) {
    if (step.length > 0 && (bytes + place.lengthBytes > stepBytes || step.length >= stepPlacesMax)) break;
    step.push(place);
    bytes += place.lengthBytes;
  }
  return step;
}

/** Returns the new places of a place, of which a row changed meanwhile may name a part. */
function elsewhere(moved: readonly { readonly from: Place; readonly to: Place }[], place: Place): Place {
  for (const { from, to } of moved) {
    const at = place.offsetBytes - from.offsetBytes;
    if (place.extentId !== from.extentId || at < 0 || at + place.lengthBytes > from.lengthBytes) continue;
    return { extentId: to.extentId, offsetBytes: to.offsetBytes + at, lengthBytes: place.lengthBytes };
  }
  return place;
}
