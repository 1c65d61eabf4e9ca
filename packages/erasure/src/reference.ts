/** The kernel in plain TypeScript: what the tests compare the WebAssembly to, and what runs where that can't be compiled. */
import { assert } from "@stamp/base";
import { multiply } from "./field.ts";

/** Writes into each output the sum of the sources multiplied by its coefficients. All parts have the same length, in bytes. */
export function combine(coefficients: readonly Uint8Array[], sources: readonly Uint8Array[], outputs: readonly Uint8Array[]): void {
  const table = new Uint8Array(256);
  outputs.forEach((output, j) => {
    output.fill(0);
    sources.forEach((source, i) => {
      assert(source.byteLength === output.byteLength, "sources and outputs have one length");
      const coefficient = coefficients[j]?.[i] ?? 0;
      if (coefficient === 0) return;
      for (let byte = 0; byte < 256; byte++) table[byte] = multiply(coefficient, byte);
      for (let at = 0; at < source.length; at++) output[at] = (output[at] as number) ^ (table[source[at] as number] as number);
    });
  });
}
