/** Small slices are joined (one copy is cheaper than many vectors, and lets go of the larger buffer they may be views of). */
import { concatBytes } from "@stamp/base";

/** Runs of neighbours become one slice while that slice stays within `joinedBytesMax`; larger slices pass as they are. */
export function joinSmall(slices: readonly Uint8Array[], joinedBytesMax: number): Uint8Array[] {
  const joined: Uint8Array[] = [];
  let run: Uint8Array[] = [];
  let runBytes = 0;
  const flush = (): void => {
    if (run.length === 1) joined.push(run[0] as Uint8Array);
    else if (run.length > 1) joined.push(concatBytes(run));
    run = [];
    runBytes = 0;
  };
  for (const slice of slices) {
    if (runBytes + slice.length > joinedBytesMax) flush();
    run.push(slice);
    runBytes += slice.length;
  }
  flush();
  return joined;
}

/** Returns the bytes that outlive their call: small ones in a buffer of their own, large ones as they are. */
export function retained(slices: readonly Uint8Array[], totalBytes: number): readonly Uint8Array[] {
  return totalBytes <= 64 * 1024 ? [concatBytes(slices)] : slices;
}
