/**
 * The pages of one chunk (256 KiB) of a page blob: runs of pages that hold something, in order, none overlapping or touching. What is in
 * no run is zeros. Format of a page row: docs/formats/row.md.
 *
 *   runs = count varint | count × ( pages before it since the last run varint | pages varint | places varint )
 *          A run takes so many of the row's places.
 *
 * A row with a run that is not of whole pages counts bytes instead: `byteRuns`, of the same form. Only files of shares have such rows.
 */
import { emptyBytes, type Outcome, ok, refused } from "@stamp/base";
import { pageUnitBytes } from "../../rows/places.ts";
import { decodeRow, encodeRow, type Place } from "../../rows/row.ts";
import { blobSchema } from "../../rows/schemas.ts";
import { ByteReader, ByteWriter, DecodeError } from "../../rows/varint.ts";
import { clipPlaces } from "../state/content.ts";

export const pageBytes: number = pageUnitBytes;
export const chunkBytes: number = 256 * 1024;

/** Counted from the start of the chunk, in bytes. */
export interface PageRun {
  readonly startBytes: number;
  readonly lengthBytes: number;
  readonly places: readonly Place[];
}

/** True if later writes may replace any page of these bytes: each page can be authenticated without the others. */
export const isOfPages = ({ cipher }: Place): boolean => cipher?.units === undefined || cipher.units.unitBytes === pageBytes;

export function encodePages(runs: readonly PageRun[]): Uint8Array {
  const isOfPages = runs.every(({ startBytes, lengthBytes }) => startBytes % pageBytes === 0 && lengthBytes % pageBytes === 0);
  const unitBytes = isOfPages ? pageBytes : 1;
  const out = new ByteWriter();
  out.varint(runs.length);
  let end = 0;
  for (const run of runs) {
    out.varint((run.startBytes - end) / unitBytes);
    out.varint(run.lengthBytes / unitBytes);
    out.varint(run.places.length);
    end = run.startBytes + run.lengthBytes;
  }
  const places = runs.flatMap((run) => run.places);
  const written = out.finish();
  return encodeRow(blobSchema, {
    ...(isOfPages ? { pageRuns: written } : { byteRuns: written }),
    places: places.length > 0 ? places : undefined,
  });
}

export function decodePages(bytes: Uint8Array): Outcome<PageRun[]> {
  const row = decodeRow(blobSchema, bytes);
  if (!row.ok) return row;
  try {
    const { byteRuns, pageRuns = emptyBytes, places = [] } = row.value;
    return ok(byteRuns ? readRuns(byteRuns, places, 1) : readRuns(pageRuns, places, pageBytes));
  } catch (error) {
    if (error instanceof DecodeError) return refused("dataLoss", "damaged", `page row: ${error.message}`);
    throw error;
  }
}

function readRuns(bytes: Uint8Array, places: readonly Place[], unitBytes: number): PageRun[] {
  const reader = new ByteReader(bytes);
  const count = reader.varint();
  const runs: PageRun[] = [];
  let end = 0;
  let place = 0;
  for (let i = 0; i < count; i++) {
    const startBytes = end + reader.varint() * unitBytes;
    const lengthBytes = reader.varint() * unitBytes;
    const next = place + reader.varint();
    end = startBytes + lengthBytes;
    if (next > places.length) throw new DecodeError("more places than there are");
    const own = places.slice(place, next);
    if (end > chunkBytes || lengthBytes === 0 || sizeOf(own) !== lengthBytes) throw new DecodeError("a run that does not fit");
    runs.push({ startBytes, lengthBytes, places: own });
    place = next;
  }
  if (reader.left !== 0 || place !== places.length) throw new DecodeError("something is left over");
  return runs;
}

const sizeOf = (places: readonly Place[]): number => places.reduce((sum, place) => sum + place.lengthBytes, 0);

/** Returns the runs with the part from `start` to `end` replaced by these places (of the same length), or by zeros. */
export function overlay(runs: readonly PageRun[], start: number, end: number, places: readonly Place[] | undefined): PageRun[] {
  const parts = [...clipRuns(runs, 0, start)];
  if (places) parts.push({ startBytes: start, lengthBytes: end - start, places });
  parts.push(...clipRuns(runs, end, chunkBytes));
  return joined(parts);
}

/** Returns the parts of runs that lie from `start` to `end`. */
export function clipRuns(runs: readonly PageRun[], start: number, end: number): PageRun[] {
  const parts: PageRun[] = [];
  for (const run of runs) {
    const from = Math.max(start, run.startBytes);
    const to = Math.min(end, run.startBytes + run.lengthBytes);
    if (from >= to) continue;
    const places = clipPlaces(run.places, from - run.startBytes, to - run.startBytes);
    parts.push({ startBytes: from, lengthBytes: to - from, places });
  }
  return parts;
}

/** Runs that touch become one. */
function joined(parts: readonly PageRun[]): PageRun[] {
  const runs: PageRun[] = [];
  for (const part of parts) {
    const last = runs.at(-1);
    if (last && last.startBytes + last.lengthBytes === part.startBytes) {
      runs[runs.length - 1] = {
        startBytes: last.startBytes,
        lengthBytes: last.lengthBytes + part.lengthBytes,
        places: [...last.places, ...part.places],
      };
    } else runs.push(part);
  }
  return runs;
}

export interface ChangedRange {
  readonly startBytes: number;
  readonly endBytes: number;
  readonly cleared: boolean;
}

/** Returns where two states of a chunk differ. A page differs when its bytes lie elsewhere: it was written since, whatever was written. */
export function differences(before: readonly PageRun[], after: readonly PageRun[]): ChangedRange[] {
  const old = pagesOf(before);
  const now = pagesOf(after);
  const changed: ChangedRange[] = [];
  for (let page = 0; page < chunkBytes / pageBytes; page++) {
    if (old[page] === now[page]) continue;
    const cleared = now[page] === undefined;
    const startBytes = page * pageBytes;
    const last = changed.at(-1);
    if (last && last.endBytes === startBytes && last.cleared === cleared) {
      changed[changed.length - 1] = { ...last, endBytes: startBytes + pageBytes };
    } else changed.push({ startBytes, endBytes: startBytes + pageBytes, cleared });
  }
  return changed;
}

/** Returns a text for the bytes of each page, by page number; pages of zeros are absent. */
function pagesOf(runs: readonly PageRun[]): (string | undefined)[] {
  const pages: (string | undefined)[] = [];
  for (const run of runs) {
    for (let at = 0; at < run.lengthBytes; at += pageBytes) {
      const places = clipPlaces(run.places, at, at + pageBytes);
      pages[(run.startBytes + at) / pageBytes] = places.map((p) => `${p.extentId}:${p.offsetBytes}:${p.lengthBytes}`).join();
    }
  }
  return pages;
}
