/** Frames come out of a plain connection as they went in, however the bytes are cut; anything else is refused with a typed error. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError } from "@stamp/base";
import fc from "fast-check";
import { FrameAssembler, kinds, writeHead } from "./frame-assembler.ts";
import { FrameMemory } from "./frame-memory.ts";

const frameBytesMax = 200_000;
/** Stands for the handshake, whose bytes are another's business. */
const greeting = Buffer.from("greeting");

function framed(content: Uint8Array, kind: number = kinds.frames): Buffer {
  const head = Buffer.alloc(8);
  writeHead(head, content.length, kind);
  return Buffer.concat([head, content]);
}

/** Returns the frames when the bytes come in pieces of these lengths, over and over. */
function assembled(bytes: Buffer, pieces: readonly number[]): { greeted: number; frames: Buffer[] } {
  const seen = { greeted: 0, frames: [] as Buffer[] };
  const assembler = new FrameAssembler(frameBytesMax, false, new FrameMemory(0), {
    handshake: (begin) => {
      if (begin.length < greeting.length) return undefined;
      seen.greeted += 1;
      return greeting.length;
    },
    frame: (frame) => seen.frames.push(frame),
  });
  for (let at = 0, i = 0; at < bytes.length; i++) {
    const count = bytes.copy(assembler.space(), 0, at, at + (pieces[i % pieces.length] as number));
    assert.ok(count > 0, "there is always space");
    at += count;
    assembler.received(count);
  }
  return seen;
}

test("assembler: frames of every size come out whole and in order, however they are cut", () => {
  const content = fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 30_000, max: 100_000 }));
  fc.assert(
    fc.property(
      fc.array(content, { maxLength: 8 }),
      fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 5 }),
      (lengths, pieces) => {
        const frames = lengths.map((length, i) => Buffer.alloc(length, i + 1));
        const stream = Buffer.concat([greeting, ...frames.flatMap((frame) => [framed(new Uint8Array(0), kinds.alive), framed(frame)])]);
        const seen = assembled(stream, pieces);
        assert.equal(seen.greeted, 1);
        assert.equal(seen.frames.length, frames.length);
        frames.forEach((frame, i) => {
          assert.equal(Buffer.compare(seen.frames[i] as Buffer, frame), 0);
        });
      },
    ),
    { numRuns: 60 },
  );
});

test("assembler: a frame that was given away is not written to again", () => {
  const first = framed(Buffer.alloc(100, 1));
  const seen = assembled(Buffer.concat([greeting, first, framed(Buffer.alloc(100, 2))]), [greeting.length + first.length]);
  assert.deepEqual(seen.frames[0], Buffer.alloc(100, 1));
});

test("assembler: an unknown kind, no bytes and too many are malformed", () => {
  const refused = (bytes: Buffer): void =>
    assert.throws(
      () => assembled(bytes, [bytes.length]),
      (error) => error instanceof FailureError && error.failure.reason === "badRequest",
    );
  refused(Buffer.concat([greeting, framed(Buffer.alloc(3), 2)]));
  refused(Buffer.concat([greeting, framed(Buffer.alloc(3), kinds.alive)]));
  refused(Buffer.concat([greeting, framed(new Uint8Array(0))]));
  refused(Buffer.concat([greeting, framed(Buffer.alloc(frameBytesMax + 1))]));
});

test("assembler: the bytes of frames are frozen", () => {
  assert.equal(framed(Buffer.from("ab")).toString("hex"), "02000000000000006162");
  assert.equal(framed(new Uint8Array(0), kinds.alive).toString("hex"), "0000000001000000");
});
