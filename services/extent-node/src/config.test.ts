import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { extentNodeSchema } from "./config.ts";

const complaint = (values: object): string => {
  const parsed = extentNodeSchema.safeParse(values);
  return parsed.success ? "" : parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("\n");
};

test("extent node, configuration: a journal segment or an extent that can't hold the largest append is refused, with both keys named", () => {
  assert.equal(complaint({}), "");
  assert.match(complaint({ journalSegmentBytes: 1 << 20 }), /^journalSegmentBytes: 1048576 is too small .*appendBytesMax = 8388608/);
  assert.match(complaint({ extentBytesMax: 1 << 20 }), /^extentBytesMax: .*appendBytesMax/);
  assert.equal(complaint({ journalSegmentBytes: 1 << 20, appendBytesMax: 900_000 }), "");
  assert.match(complaint({ appendBytesMax: 9 << 20 }), /^appendBytesMax/);
});

test("extent node, configuration: the process says so and ends before it touches its disk", () => {
  const main = fileURLToPath(new URL("./main.ts", import.meta.url));
  const { status, stderr } = spawnSync(process.execPath, [main, "--journal-segment-bytes", "1048576"], { encoding: "utf8" });
  assert.equal(status, 64);
  assert.match(stderr, /journalSegmentBytes .*too small for appends of appendBytesMax/);
});
