/**
 * Decides whether rows of another stamp may be written here.
 *
 *     rows ──► keys of their PartitionName, and readable ──► bytes that were written for it, and stay ──► written
 *
 * Invariants:
 * - The bytes that a row refers to are in the blob data of their range, and stay there (rule `geoPlacesChecked`).
 * - They were written here for the row's PartitionName, as a handle says (data-handles.ts, rule `geoPlacesVouched`).
 * - Bytes that a row of the same PartitionName has here may stay in a row that replaces it, and move from a row that is deleted with it. A collector
 *   that looks for references may have disowned their extents: it sees one moment of a PartitionName (collector-scan.ts).
 * - A row is of a kind and schema that this release reads (`shippedRow`): the collector walks over the rows of all accounts of a range.
 */
import { compareBytes, type Outcome, ok, refused, toHex } from "@stamp/base";
import { decodeKey, type Place, partitionStart, placesOfRow, type ShippedTable, shippedRow, versionOfRow } from "@stamp/objects";
import { Turns, type World } from "@stamp/ports";
import type { RangePartition, Row } from "@stamp/range-partition";
import type { Vouchers } from "./data-handles.ts";

const firstRowVersion = 1;
/** Longest key of a row. Names of blobs, entities and queues, escaped, are below half of it. */
const keyBytesMax = 16 * 1024;

export interface AdmissionOptions {
  readonly table: ShippedTable;
  /** True if references to bytes are checked; false: the table's rows have none, or the rule is off. */
  readonly isChecked: boolean;
  /** Undefined: the stamp's feature level is below the one at which handles are asked for. */
  readonly vouchers: Vouchers | undefined;
}

/** Refuses keys that are not of the PartitionName, and a PartitionName that is none: its rows would be split, or locked as another one's. */
export function keysAdmitted(name: Uint8Array, keys: Iterable<Uint8Array>): Outcome<void> {
  const bad = (message: string) => refused("invalidArgument", "badRequest", message);
  const start = partitionStart(name);
  if (start === undefined || compareBytes(start, name) !== 0) return bad("rows were shipped of what is no PartitionName");
  for (const key of keys) {
    if (key.length > keyBytesMax) return bad(`a key of ${key.length} bytes was shipped, at most ${keyBytesMax} are taken`);
    const own = partitionStart(key);
    if (own === undefined || compareBytes(own, name) !== 0) return bad("a row was shipped outside of its PartitionName");
    // Hidden rows of this stamp begin with the same bytes.
    const components = decodeKey(key);
    if (!components.ok || components.value.length !== 3) return bad("a row was shipped with the key of none");
  }
  return ok();
}

/**
 * `rows`: rows to be written. `stored`: reads the rows that they replace, and those that are deleted with it. Rows of a later version than
 * the first are written after the range's state says so (docs/formats/versions.md).
 */
export async function admittedRows(
  world: World,
  range: Pick<RangePartition, "rangeId" | "need" | "ownsPlace">,
  rows: readonly Row[],
  stored: () => Promise<readonly Row[]>,
  { table, isChecked, vouchers }: AdmissionOptions,
): Promise<Outcome<void>> {
  const turns = new Turns(world.clock);
  const version = rows.reduce((most, [, value]) => Math.max(most, versionOfRow(value)), firstRowVersion);
  const recorded = version === firstRowVersion ? ok() : await range.need("row", version);
  if (!recorded.ok) return recorded;
  for (const [key, value] of rows) {
    if (turns.over) await turns.next();
    const readable = shippedRow(table, key, value);
    if (!readable.ok) return refused("invalidArgument", "badRequest", `a row was shipped that can't be read: ${readable.failure.message}`);
  }
  if (!isChecked) return ok();
  const wanted = placesByName(rows);
  if (!wanted.ok) return wanted;
  let held: ReadonlyMap<string, NamedPlaces> | undefined;
  for (const [id, { name, places }] of wanted.value) {
    const disowned = places.filter((place) => !range.ownsPlace(place));
    const owned = vouchers === undefined ? [] : places.filter((place) => range.ownsPlace(place));
    const unvouched = vouchers === undefined ? [] : await vouchers.unvouched(name, owned, turns);
    const doubtful = [...disowned, ...unvouched];
    if (doubtful.length === 0) continue;
    if (held === undefined) {
      const own = placesByName(await stored());
      if (!own.ok) return own;
      held = own.value;
    }
    const missing = await firstOutside(doubtful, held.get(id)?.places ?? [], turns);
    if (missing === undefined) continue;
    const message = disowned.includes(missing)
      ? `extent ${missing.extentId} is not in the blob data of ${range.rangeId}, or is about to leave it`
      : `no handle says that the bytes at ${missing.offsetBytes} of extent ${missing.extentId} were written for this PartitionName`;
    return refused("aborted", "badPlace", `${message}: the sender writes them again`);
  }
  return ok();
}

interface NamedPlaces {
  readonly name: Uint8Array;
  readonly places: Place[];
}

/** Returns the places, keyed by the bytes of the PartitionName in hexadecimal. */
function placesByName(rows: readonly Row[]): Outcome<ReadonlyMap<string, NamedPlaces>> {
  const byName = new Map<string, NamedPlaces>();
  for (const [key, value] of rows) {
    const own = placesOfRow(value);
    if (!own.ok) return own;
    if (own.value.length === 0) continue;
    const name = partitionStart(key) ?? key;
    const id = toHex(name);
    const found = byName.get(id) ?? { name, places: [] };
    byName.set(id, found);
    for (const place of own.value) found.places.push(place);
  }
  return ok(byName);
}

/** Returns the first place that lies in none of the others. Those may lie in one another, as pages of layers do. */
async function firstOutside(places: readonly Place[], others: readonly Place[], turns: Turns): Promise<Place | undefined> {
  const byExtent = new Map<number, { place: Place; endMost: number }[]>();
  for (const place of [...others].sort((a, b) => a.offsetBytes - b.offsetBytes)) {
    const same = byExtent.get(place.extentId) ?? [];
    byExtent.set(place.extentId, same);
    same.push({ place, endMost: Math.max(endOf(place), same.at(-1)?.endMost ?? 0) });
  }
  for (const place of places) {
    if (turns.over) await turns.next();
    const same = byExtent.get(place.extentId) ?? [];
    let [low, high] = [0, same.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((same[middle]?.place.offsetBytes ?? 0) > place.offsetBytes) high = middle;
      else low = middle + 1;
    }
    if ((same[low - 1]?.endMost ?? -1) < endOf(place)) return place;
  }
  return undefined;
}

const endOf = ({ offsetBytes, lengthBytes }: Place): number => offsetBytes + lengthBytes;
