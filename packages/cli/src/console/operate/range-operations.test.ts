import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { type Outcome, ok, refused } from "@stamp/base";
import { type PartitionsChanged, PartitionsChangedSchema } from "@stamp/wire";
import { rangeOperations } from "./range-operations.ts";

const never = new AbortController().signal;

/** Operations at a manager that gives one answer and notes what it was asked. */
function world(answer: Outcome<PartitionsChanged>) {
  const asked: string[] = [];
  const calls = (name: string) => async (request: object) => {
    asked.push(`${name} ${JSON.stringify(request)}`);
    return answer;
  };
  const manager = { splitPartition: calls("split"), mergePartition: calls("merge"), movePartition: calls("move") };
  const operations = rangeOperations(async () => manager as never);
  const run = async (what: string, fields: object): Promise<object | undefined> => operations[`/api/${what}`]?.(fields as never, never);
  return { run, asked };
}

const two = create(PartitionsChangedSchema, {
  ranges: [
    { rangeId: "blob-2", server: "partition-server-1" },
    { rangeId: "blob-3", server: "partition-server-1" },
  ],
  heldMs: 12,
});

test("console: a range is split, merged and moved, and the page is told the ranges that there are then", async () => {
  const { run, asked } = world(ok(two));
  assert.deepEqual(await run("split-range", { range: "blob-1" }), {
    ranges: [
      { id: "blob-2", server: "partition-server-1" },
      { id: "blob-3", server: "partition-server-1" },
    ],
    heldMs: 12,
  });
  await run("merge-range", { range: "blob-1" });
  await run("move-range", { range: "blob-1", server: "partition-server-2" });
  await run("move-range", { range: "blob-1", server: "" });
  assert.deepEqual(asked, [
    'split {"rangeId":"blob-1"}',
    'merge {"rangeId":"blob-1"}',
    'move {"rangeId":"blob-1","server":"partition-server-2"}',
    'move {"rangeId":"blob-1","server":""}',
  ]);
});

test("console: a change of no named range, and a move that names no server at all, ask nothing", async () => {
  const { run, asked } = world(ok(two));
  for (const what of ["split-range", "merge-range", "move-range"]) await assert.rejects(run(what, {}), /names no range/);
  await assert.rejects(run("move-range", { range: "blob-1" }), /has no server/);
  assert.deepEqual(asked, []);
});

test("console: a refusal of the partition manager is told with what to do next", async () => {
  const busy = world(refused("unavailable", "partitionLoading", "blob-1 is not served now"));
  await assert.rejects(busy.run("split-range", { range: "blob-1" }), /not served now\. Try again when it is served/);
  const gone = world(refused("notFound", "wrongPartition", "there is no range blob-1"));
  await assert.rejects(gone.run("merge-range", { range: "blob-1" }), /^Error: there is no range blob-1$|there is no range blob-1$/);
});
