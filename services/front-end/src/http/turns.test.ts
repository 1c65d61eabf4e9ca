import assert from "node:assert/strict";
import { test } from "node:test";
import { BlockListReader } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { type Clock, turnSliceMs } from "@stamp/ports";
import fc from "fast-check";
import { readInTurns, textInTurns } from "./turns.ts";

/** A clock on which every look takes a millisecond; counts how often others went first. */
function slowClock() {
  let nowMs = 0;
  let others = 0;
  const clock: Clock = {
    monotonicMs: () => nowMs++,
    wallMs: () => nowMs,
    suspendedMs: () => 0,
    after: (_delayMs, callback) => {
      others++;
      queueMicrotask(callback);
      return { cancel: () => {} };
    },
  };
  return { clock, others: () => others };
}

test("documents: a long text is written in turns, and is what its pieces are", async () => {
  const pieces = Array.from({ length: 1_000 }, (_, i) => `piece ${i} é\u{1f600} ${"x".repeat(200)}`);
  const { clock, others } = slowClock();
  assert.deepEqual(Buffer.from(await textInTurns(clock, pieces)), Buffer.from(pieces.join("")));
  assert.ok(others() >= 1_000 / (turnSliceMs + 1) - 1, `${others()} turns for others`);
  assert.equal((await textInTurns(clock, [])).length, 0);
});

test("documents: texts of any characters and lengths are written as TextEncoder writes them whole", async () => {
  const piece = fc.oneof(
    fc.string({ unit: "binary", maxLength: 40 }),
    fc.tuple(fc.constantFrom("x", "é", "€", "\u{1f600}", "\ud800"), fc.nat(20_000)).map(([unit, count]) => unit.repeat(count)),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece, { maxLength: 6 }), async (pieces) => {
      const expected = Buffer.concat([...chunksOf(pieces)].map((text) => utf8(text)));
      assert.equal(Buffer.compare(await textInTurns(slowClock().clock, pieces), expected), 0);
    }),
    { numRuns: 30 },
  );
});

/** The texts that are encoded at once: a pair of surrogates that two pieces share may be in one of them. */
function* chunksOf(pieces: readonly string[]): Generator<string, void> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < 16 * 1024) continue;
    yield text;
    text = "";
  }
  yield text;
}

test("documents: a long list is read in turns; what is wrong ends it at once", async () => {
  const list = utf8(`<BlockList>${"<Latest>QUFB</Latest>".repeat(49_000)}</BlockList>`);
  const whole = slowClock();
  const read = await readInTurns(whole.clock, new BlockListReader(), list);
  assert.ok(read.ok && read.value.length === 49_000);
  assert.ok(whole.others() >= list.length / (16 * 1024) / (turnSliceMs + 1) - 1, `${whole.others()} turns for others`);
  const wrong = slowClock();
  const refused = await readInTurns(wrong.clock, new BlockListReader(), utf8(`<BlockList><a/>${"<Latest>QUFB</Latest>".repeat(49_000)}`));
  assert.ok(!refused.ok && refused.error.code === "UnsupportedXmlNode");
  assert.equal(wrong.others(), 0);
});
