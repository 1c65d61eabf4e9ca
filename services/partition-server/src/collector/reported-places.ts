/**
 * Report rows of deposed primaries as the collector sees them (docs/design/geo-shipping.md "Report of a deposed primary"): each holds a row that only
 * this stamp had, with the places of its bytes. As long as the report is kept, these bytes are.
 */
import { FailureError, type Outcome, ok } from "@stamp/base";
import { type Place, partitionStart, placesOfRow, type RowEntry, withPlaces } from "@stamp/objects";
import { decodeReportRow, encodeReportRow, isMarkerKey, isReportKey, type ReportRow } from "@stamp/range-partition";

/** Returns the row that a report row holds; undefined: it is no report row. Throws FailureError if it is damaged. */
export function reportedRow({ key, value }: RowEntry): ReportRow | undefined {
  const name = isMarkerKey(key) ? partitionStart(key) : undefined;
  if (name === undefined || !isReportKey(key, name)) return undefined;
  const row = decodeReportRow(key, name, value);
  if (!row.ok) throw new FailureError(row.failure);
  return row.value;
}

/** Returns the places of a row or of the row that a report row holds. */
export function placesOf(row: RowEntry): Outcome<readonly Place[]> {
  const reported = reportedRow(row);
  if (reported === undefined) return placesOfRow(row.value);
  return reported.write.kind === "put" ? placesOfRow(reported.write.value) : ok([]);
}

/** Returns the value of the row with its bytes elsewhere, as `withPlaces` does; of a report row, that of the row that it holds. */
export function movedTo(row: RowEntry, placeFor: (place: Place) => Place): Outcome<Uint8Array> {
  const reported = reportedRow(row);
  if (reported === undefined) return withPlaces(row.value, placeFor);
  const { name, write } = reported;
  if (write.kind !== "put") return ok(row.value);
  const moved = withPlaces(write.value, placeFor);
  if (!moved.ok || moved.value === write.value) return moved.ok ? ok(row.value) : moved;
  return ok(encodeReportRow(name, { ...write, value: moved.value }));
}
