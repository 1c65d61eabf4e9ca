/**
 * The text of the WebAssembly kernel. Each function goes through the fragments once, column by column: a column is a few vectors of 16 bytes at
 * one offset of all sources, and the sums for all outputs stay in registers.
 *
 * A product with a constant is two look-ups: `relaxed_swizzle` takes the low and the high half of 16 bytes as indices into the tables of the 16
 * products of each half. The tables of source i and output j lie at `tables + (i * outputs + j) * 32`: low half first.
 * Indices are below 16, where the relaxed instruction is defined in the same way on every machine.
 *
 * All lengths are multiples of 64 bytes and above 0; pointers are aligned to 16 bytes.
 */

const mask = "(v128.const i32x4 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f 0x0f0f0f0f)";
const zero = "(v128.const i32x4 0 0 0 0)";
const upTo = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const lines = (parts: readonly string[]): string => parts.join("\n");

/** Adds `body`, which reads $source and $table, up over all sources, and stores the sums of each column. */
function overColumns(outputs: number, vectors: number, tableBytes: number, body: string): string {
  return `
    (loop $columns
${lines(upTo(outputs).flatMap((j) => upTo(vectors).map((v) => `      (local.set $sum${j}_${v} ${zero})`)))}
      (local.set $pointer (local.get $sources))
      (local.set $table (local.get $tables))
      (local.set $left (local.get $count))
      (loop $each
        (local.set $source (i32.add (i32.load (local.get $pointer)) (local.get $at)))
${body}
        (local.set $pointer (i32.add (local.get $pointer) (i32.const 4)))
        (local.set $table (i32.add (local.get $table) (i32.const ${tableBytes})))
        (br_if $each (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
${lines(
  upTo(outputs).flatMap((j) => [
    `      (local.set $source (i32.add (i32.load offset=${4 * j} (local.get $outputs)) (local.get $at)))`,
    ...upTo(vectors).map((v) => `      (v128.store offset=${16 * v} (local.get $source) (local.get $sum${j}_${v}))`),
  ]),
)}
      (br_if $columns (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const ${16 * vectors}))) (local.get $length))))`;
}

function functionOf(name: string, outputs: number, vectors: number, tableBytes: number, body: string): string {
  const sums = upTo(outputs).flatMap((j) => upTo(vectors).map((v) => `(local $sum${j}_${v} v128)`));
  const halves = upTo(vectors).flatMap((v) => [`(local $low${v} v128)`, `(local $high${v} v128)`]);
  return `
  (func (export "${name}") (param $sources i32) (param $count i32) (param $tables i32) (param $outputs i32) (param $length i32)
    (local $at i32) (local $pointer i32) (local $table i32) (local $left i32) (local $source i32) (local $products v128)
    ${[...sums, ...halves].join(" ")}${overColumns(outputs, vectors, tableBytes, body)})`;
}

/** Writes the XOR of all sources into one output. */
function addition(): string {
  const vectors = 4;
  const body = upTo(vectors).map(
    (v) => `        (local.set $sum0_${v} (v128.xor (local.get $sum0_${v}) (v128.load offset=${16 * v} (local.get $source))))`,
  );
  return functionOf("add", 1, vectors, 0, lines(body));
}

/** Writes, for each output, the sum of all sources multiplied by constants. */
function combination(outputs: number): string {
  const vectors = outputs <= 2 ? 4 : 2;
  const halves = upTo(vectors).flatMap((v) => [
    `        (local.set $high${v} (v128.load offset=${16 * v} (local.get $source)))`,
    `        (local.set $low${v} (v128.and (local.get $high${v}) ${mask}))`,
    `        (local.set $high${v} (v128.and (i16x8.shr_u (local.get $high${v}) (i32.const 4)) ${mask}))`,
  ]);
  const products = upTo(outputs).flatMap((j) =>
    ["low", "high"].flatMap((half, h) => [
      `        (local.set $products (v128.load offset=${32 * j + 16 * h} (local.get $table)))`,
      ...upTo(vectors).map((v) => {
        const product = `(i8x16.relaxed_swizzle (local.get $products) (local.get $${half}${v}))`;
        return `        (local.set $sum${j}_${v} (v128.xor (local.get $sum${j}_${v}) ${product}))`;
      }),
    ]),
  );
  return functionOf(`combine${outputs}`, outputs, vectors, 32 * outputs, lines([...halves, ...products]));
}

/** Largest number of outputs of one call. */
export const outputsMax = 4;

/** Returns the module's text. It exports `memory`, `add` and `combine1` to `combine4`. */
export function kernelText(): string {
  const functions = [addition(), ...upTo(outputsMax).map((j) => combination(j + 1))];
  return `(module\n  (memory (export "memory") 1)${functions.join("\n")})\n`;
}
