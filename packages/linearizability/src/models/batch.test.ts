/** Batches over cells: what one moment can show, and what none can. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkHistory } from "../check.ts";
import type { RecordedOperation } from "../history.ts";
import { type BatchCall, batchModel } from "./batch.ts";

const at = (calledAt: number, returnedAt: number | undefined, call: BatchCall): RecordedOperation<BatchCall> => ({
  call,
  calledAt,
  returnedAt,
});
const batch = (done: boolean | undefined, ...changes: [cell: number, from: number, to: number][]): BatchCall => ({
  kind: "batch",
  changes: changes.map(([cell, from, to]) => ({ cell, from, to })),
  done,
});
const read = (first: number, ...values: number[]): BatchCall => ({ kind: "read", first, values });
const verdict = (...history: RecordedOperation<BatchCall>[]): string => checkHistory(batchModel(4), history).kind;

test("batch model: a batch is seen whole, or not at all", () => {
  const write = at(0, 10, batch(true, [0, 0, 1], [2, 0, 1]));
  assert.equal(verdict(write, at(1, 2, read(0, 0, 0, 0))), "linearizable");
  assert.equal(verdict(write, at(1, 2, read(0, 1, 0, 1))), "linearizable");
  assert.equal(verdict(write, at(1, 2, read(0, 1, 0, 0))), "violation");
});

test("batch model: a read of several cells is of one moment, also when it lasts", () => {
  const one = at(0, 1, batch(true, [0, 0, 1]));
  const other = at(2, 3, batch(true, [3, 0, 2]));
  assert.equal(verdict(one, other, at(0, 9, read(0, 1, 0, 0, 0))), "linearizable");
  assert.equal(verdict(one, other, at(0, 9, read(0, 0, 0, 0, 2))), "violation");
});

test("batch model: what was acknowledged is not lost, what is unknown may happen later, and once only", () => {
  const write = at(0, 1, batch(true, [0, 0, 1]));
  assert.equal(verdict(write, at(2, 3, read(0, 0))), "violation");
  const unknown = at(0, undefined, batch(undefined, [0, 0, 1]));
  assert.equal(verdict(unknown, at(2, 3, read(0, 0)), at(4, 5, read(0, 1))), "linearizable");
  assert.equal(verdict(unknown, at(2, 3, read(0, 1)), at(4, 5, read(0, 0))), "violation");
});

test("batch model: a refusal needs a cell that held something else", () => {
  const write = at(0, 1, batch(true, [0, 0, 1]));
  assert.equal(verdict(write, at(2, 3, batch(false, [0, 0, 2]))), "linearizable");
  assert.equal(verdict(write, at(2, 3, batch(false, [0, 1, 2]))), "violation");
  assert.equal(verdict(write, at(2, 3, batch(true, [0, 0, 2]))), "violation");
});
