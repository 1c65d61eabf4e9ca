/** Frames and payload messages written by hand are the bytes that protobuf would read and write; damaged ones are refused. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FailureError } from "@stamp/base";
import {
  AppendRequestSchema,
  BusFramesSchema,
  ExtentNode,
  GetKeysResponseSchema,
  KeyVersionSchema,
  LockService,
  ReadResponseSchema,
  TransactRequestSchema,
} from "@stamp/wire";
import fc from "fast-check";
import { codecOf, preparedNothing, preparedToBuffer } from "../message-codec.ts";
import { laneOf } from "../methods.ts";
import type { Outgoing } from "./frames.ts";
import { decodeFrames, encodeFrames, failureField, metadataFields, methodField } from "./frames.ts";

const whole = { headBytes: 0, referencedFromBytes: Number.POSITIVE_INFINITY };

const bytes = (maxLength: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ maxLength });

test("payload message: repeated payloads are the bytes protobuf reads, small fields included", () => {
  fc.assert(
    fc.property(fc.array(bytes(300), { maxLength: 5 }), fc.bigInt(0n, 2n ** 53n), (payload, extentId) => {
      const codec = codecOf(AppendRequestSchema);
      const buffer = preparedToBuffer(codec.prepare({ extentId, ownerEpoch: 3n, payload }));
      const expected = create(AppendRequestSchema, { extentId, ownerEpoch: 3n, payload });
      assert.deepEqual(fromBinary(AppendRequestSchema, new Uint8Array(buffer)), expected);
      assert.deepEqual(codec.decode(Buffer.from(toBinary(AppendRequestSchema, expected))), expected);
    }),
  );
});

test("payload message: a single payload, also empty and large", () => {
  const codec = codecOf(ReadResponseSchema);
  for (const length of [0, 1, 127, 128, 20_000, 3_000_000]) {
    const message = create(ReadResponseSchema, { payload: new Uint8Array(length).fill(7) });
    const buffer = preparedToBuffer(codec.prepare(message));
    assert.equal(Buffer.compare(buffer, Buffer.from(toBinary(ReadResponseSchema, message))), 0);
  }
});

test("payload message: a decoded payload is a view of the frame, the bytes of other messages are not", () => {
  const payloadFrame = Buffer.from(toBinary(AppendRequestSchema, create(AppendRequestSchema, { payload: [new Uint8Array(100)] })));
  const append = codecOf(AppendRequestSchema).decode(payloadFrame) as ReturnType<typeof create<typeof AppendRequestSchema>>;
  assert.equal(append.payload[0]?.buffer, payloadFrame.buffer);
  assert.equal(append.payload[0]?.constructor, Uint8Array);
  const keyFrame = Buffer.concat([Buffer.alloc(5000), toBinary(KeyVersionSchema, create(KeyVersionSchema, { value: new Uint8Array(10) }))]);
  const key = codecOf(KeyVersionSchema).decode(keyFrame.subarray(5000)) as ReturnType<typeof create<typeof KeyVersionSchema>>;
  assert.ok(key.value.buffer.byteLength < 100, "keeping the value must not keep the frame");
  assert.notEqual(codecOf(TransactRequestSchema), codecOf(KeyVersionSchema));
});

test("lanes: whatever may carry a payload in either direction is bulk", () => {
  assert.equal(laneOf(ExtentNode.method.append), "bulk");
  assert.equal(laneOf(ExtentNode.method.read), "bulk");
  assert.equal(laneOf(ExtentNode.method.fenceExtent), "control");
  assert.equal(laneOf(LockService.method.renewLease), "control");
});

/** A map in a plain object can not hold this name, and the two readers lose it differently. No caller sends it. */
const metadataName = fc.string({ minLength: 1, maxLength: 10 }).filter((name) => name !== "__proto__");

/** Values that the message copies, and values that it does not. */
const value = fc.oneof(
  bytes(200),
  fc.nat(300).map((more) => new Uint8Array(16_300 + more).fill(more)),
);
const entryOf = (bytesOfKey: Uint8Array) => ({ key: "k", value: bytesOfKey, version: 3n });

const outgoing: fc.Arbitrary<Outgoing> = fc.oneof(
  fc.record({
    kind: fc.constant("request" as const),
    callId: fc.integer({ min: 0, max: 0xffff_ffff }),
    method: fc.string({ unit: "grapheme", maxLength: 40 }).map(methodField),
    timeoutMs: fc.integer({ min: 0, max: 0x7fff_ffff }),
    metadata: fc.dictionary(metadataName, fc.string({ unit: "grapheme", maxLength: 10 })).map(metadataFields),
    message: fc.array(bytes(200), { maxLength: 3 }).map((payload) => codecOf(AppendRequestSchema).prepare({ extentId: 5n, payload })),
  }),
  fc.record({
    kind: fc.constant("answer" as const),
    callId: fc.integer({ min: 0, max: 0xffff_ffff }),
    failure: fc.constantFrom(
      new Uint8Array(0),
      failureField({ code: "aborted", reason: "conflict", message: "m", applied: "unknown", details: { a: "b" } }),
    ),
    message: fc.oneof(
      fc.constant(preparedNothing),
      bytes(200).map((payload) => codecOf(ReadResponseSchema).prepare({ payload })),
      fc.array(value, { maxLength: 3 }).map((values) => codecOf(GetKeysResponseSchema).prepare({ entries: values.map(entryOf) })),
    ),
  }),
);

test("frames: what is written by hand is what protobuf reads, and our reader agrees with it", () => {
  fc.assert(
    fc.property(
      fc.array(outgoing, { maxLength: 6 }),
      fc.array(fc.integer({ min: 0, max: 0xffff_ffff }), { maxLength: 4 }),
      (items, cancelled) => {
        const frame = Buffer.concat(encodeFrames(items, cancelled, whole));
        const read = fromBinary(BusFramesSchema, new Uint8Array(frame));
        const mine = decodeFrames(frame);
        assert.deepEqual(mine.cancelled, read.cancelled);
        assert.deepEqual(mine.cancelled, cancelled);
        assert.equal(read.requests.length + read.answers.length, items.length);
        read.requests.forEach((request, i) => {
          const own = mine.requests[i];
          assert.ok(own);
          assert.deepEqual(
            [own.callId, own.method, own.timeoutMs, { ...own.metadata }, Buffer.from(own.message)],
            [request.callId, request.method, request.timeoutMs, { ...request.metadata }, Buffer.from(request.message)],
          );
        });
        read.answers.forEach((answer, i) => {
          const own = mine.answers[i];
          assert.ok(own);
          assert.deepEqual([own.callId, Buffer.from(own.message)], [answer.callId, Buffer.from(answer.message)]);
          assert.equal(own.failure?.message, answer.failure?.message);
          assert.equal(own.failure?.applied === "unknown", answer.failure?.appliedUnknown ?? false);
        });
        // Written by protobuf, read by us.
        assert.deepEqual(decodeFrames(Buffer.from(toBinary(BusFramesSchema, read))), mine);
      },
    ),
  );
});

test("frames: in parts they are the same bytes behind room for a header, and large payloads are the caller's own", () => {
  fc.assert(
    fc.property(fc.array(outgoing, { minLength: 1, maxLength: 6 }), fc.integer({ min: 1, max: 250 }), (items, referencedFromBytes) => {
      const parts = encodeFrames(items, [7], { headBytes: 8, referencedFromBytes });
      const expected = Buffer.concat(encodeFrames(items, [7], whole));
      assert.equal(Buffer.compare(Buffer.concat(parts).subarray(8), expected), 0);
      assert.ok((parts[0] as Buffer).length >= 8);
      const referenced = items.flatMap(({ message }) => [...message.references.map((reference) => reference.bytes), ...message.payload]);
      const large = referenced.filter((each) => each.length >= referencedFromBytes);
      const own = new Set(large.map((payload) => payload.buffer));
      assert.equal(parts.filter((part) => own.has(part.buffer)).length, large.length);
    }),
  );
});

test("frames: cut or changed bytes give a typed error or another frame, never a crash", () => {
  const parts = encodeFrames(
    [
      {
        kind: "request",
        callId: 300,
        method: methodField("stamp.v1.X/Y"),
        timeoutMs: 5,
        metadata: metadataFields({ a: "b" }),
        message: preparedNothing,
      },
      {
        kind: "answer",
        callId: 7,
        failure: new Uint8Array(0),
        message: codecOf(ReadResponseSchema).prepare({ payload: new Uint8Array(50) }),
      },
    ],
    [1, 2, 300],
    whole,
  );
  const frame = Buffer.concat(parts);
  const read = (bytes: Buffer): void => {
    try {
      decodeFrames(bytes);
    } catch (error) {
      assert.ok(
        error instanceof FailureError || error instanceof RangeError || /invalid|premature|illegal/i.test(String(error)),
        String(error),
      );
    }
  };
  for (let length = 0; length < frame.length; length++) read(frame.subarray(0, length));
  for (let i = 0; i < frame.length * 8; i++) {
    const flipped = Buffer.from(frame);
    flipped[i >> 3] = (flipped[i >> 3] as number) ^ (1 << (i & 7));
    read(flipped);
  }
});
