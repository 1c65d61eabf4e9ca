/**
 * Puts neighbouring places into runs. A run is one call to an extent node, so that a blob of 50,000 small appends costs some hundred calls
 * instead of 50,000. Between the partition server's answer, which names the places, and the reads from replicas.
 *
 * - The places of a run lie in one extent, at most `runSpanBytesMax` from the first byte to the last.
 * - A run has at most `runPlacesMax` places and, when it has more than one, at most `bytesMax` bytes (of the caller's; at most
 *   `runBytesMax`).
 * - No place of a run is longer than `chunkBytesMax`: longer places are cut.
 */
import type { Place } from "../types.ts";

export const runPlacesMax = 1_024;
export const runBytesMax: number = 256 * 1024;
const runSpanBytesMax = 512 * 1024;
const chunkBytesMax = 1024 * 1024;

/** Places that follow one another; never empty. */
export type PlaceRun = readonly [Place, ...Place[]];

export const lengthOfRun = (run: PlaceRun): number => run.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);

/** Yields all bytes of the places, in order. A run of more than one place has at most `bytesMax` bytes. */
export function* runsOfPlaces(places: Iterable<Place>, bytesMax: number): Generator<PlaceRun, undefined> {
  let run: [Place, ...Place[]] | undefined;
  let [beginBytes, endBytes, lengthBytes] = [0, 0, 0];
  for (const chunk of chunksOf(places)) {
    const begin = Math.min(beginBytes, chunk.offsetBytes);
    const end = Math.max(endBytes, chunk.offsetBytes + chunk.lengthBytes);
    const fits =
      run !== undefined &&
      run.length < runPlacesMax &&
      run[0].extentId === chunk.extentId &&
      lengthBytes + chunk.lengthBytes <= Math.min(bytesMax, runBytesMax) &&
      end - begin <= runSpanBytesMax;
    if (run !== undefined && fits) {
      run.push(chunk);
      [beginBytes, endBytes, lengthBytes] = [begin, end, lengthBytes + chunk.lengthBytes];
      continue;
    }
    if (run !== undefined) yield run;
    run = [chunk];
    [beginBytes, endBytes, lengthBytes] = [chunk.offsetBytes, chunk.offsetBytes + chunk.lengthBytes, chunk.lengthBytes];
  }
  if (run !== undefined) yield run;
}

function* chunksOf(places: Iterable<Place>): Generator<Place, undefined> {
  for (const { extentId, offsetBytes, lengthBytes } of places) {
    for (let at = 0; at < lengthBytes; at += chunkBytesMax) {
      yield { extentId, offsetBytes: offsetBytes + at, lengthBytes: Math.min(chunkBytesMax, lengthBytes - at) };
    }
  }
}
