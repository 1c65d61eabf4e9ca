/** The text of `stamp metadata restore FILE --list`; tests/drills/lock-service-folders.slow.ts has the command, against a stamp that was stopped. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { previewText } from "./preview-restore.ts";

test("metadata restore --list: says what comes back, what is lost and why, and which nodes were not read", () => {
  const text = previewText({
    comesBack: [{ stream: "/ps/table-1/row-data", extents: [7, 9] }],
    lost: [
      { id: 11, stream: "/ps/table-2/commit-log", bytes: 4_096, why: "no replica is intact" },
      { id: 12, stream: "/ps/table-2/commit-log", why: "no node that was heard has it" },
    ],
    missing: [{ stream: "/ps/table-1/row-data", id: 6 }],
    absent: ["extent-node-3"],
  });
  assert.deepEqual(text.split("\n"), [
    "extents that began after the copy and come back: 2",
    "  /ps/table-1/row-data: 7, 9",
    "extents that do not come back: 2",
    "  /ps/table-2/commit-log: 11 (4096 bytes): no replica is intact",
    "  /ps/table-2/commit-log: 12: no node that was heard has it",
    "extents before those, truncated away after the copy or lost: 1",
    "  /ps/table-1/row-data: 6",
    "nodes whose folders were not read here: extent-node-3: what only they have is not listed",
    "nothing was changed",
  ]);
});
