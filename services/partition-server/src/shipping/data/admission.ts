/**
 * Decides whether rows of another stamp may be written here: the bytes that they refer to have to be in the blob data of their range and stay
 * there (rule `geoPlacesChecked`).
 *
 * A collector that looks for references disowns old extents meanwhile. Bytes in such an extent may stay in a row that is replaced, and move
 * from a row that is deleted: all rows are of one PartitionName, of which the collector sees one moment (collector-scan.ts).
 */
import { type Outcome, ok, refused } from "@stamp/base";
import { type Place, placesOfRow, versionOfRow } from "@stamp/objects";
import type { RangePartition } from "@stamp/range-partition";

const firstRowVersion = 1;

/**
 * `values`: rows to be written. `stored`: reads the rows that they replace, and those that are deleted with it. Rows of a later version than
 * the first are written after the range's state says so (docs/formats/versions.md).
 */
export async function admitted(
  range: Pick<RangePartition, "rangeId" | "need" | "ownsPlace">,
  values: readonly Uint8Array[],
  stored: () => Promise<readonly Uint8Array[]>,
  isChecked: boolean,
): Promise<Outcome<void>> {
  const version = values.reduce((most, value) => Math.max(most, versionOfRow(value)), firstRowVersion);
  const recorded = version === firstRowVersion ? ok() : await range.need("row", version);
  if (!recorded.ok || !isChecked) return recorded;
  const wanted = placesIn(values);
  if (!wanted.ok) return wanted;
  const disowned = wanted.value.filter((place) => !range.ownsPlace(place));
  if (disowned.length === 0) return ok();
  const held = placesIn(await stored());
  if (!held.ok) return held;
  const missing = disowned.find((place) => !held.value.some((one) => lies(place, one)));
  if (missing === undefined) return ok();
  return refused("aborted", "badPlace", `extent ${missing.extentId} is not in the blob data of ${range.rangeId}, or is about to leave it`);
}

function placesIn(rows: readonly Uint8Array[]): Outcome<readonly Place[]> {
  const places: Place[] = [];
  for (const row of rows) {
    const own = placesOfRow(row);
    if (!own.ok) return own;
    for (const place of own.value) places.push(place);
  }
  return ok(places);
}

const lies = (inner: Place, outer: Place): boolean =>
  inner.extentId === outer.extentId &&
  inner.offsetBytes >= outer.offsetBytes &&
  inner.offsetBytes + inner.lengthBytes <= outer.offsetBytes + outer.lengthBytes;
