import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { withSourcePlaces } from "./source-places.ts";

test("stacks: a place in a bundled file is told as the place in its source; others stay as they are", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-places-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, "program.mjs");
  // Column 0 of line 1 is line 3, column 4 of the source; column 10 is line 5, column 0.
  writeFileSync(`${file}.map`, JSON.stringify({ version: 3, sources: ["src/node.ts"], names: [], mappings: "AAEI,UAEJ" }));
  const url = pathToFileURL(file).href;
  const other = pathToFileURL(join(folder, "other.mjs")).href;
  const stack = `Error: no\n    at write (${url}:1:1)\n    at async ${url}:1:12\n    at read (${other}:7:8)\n    at node:internal/timers:1:2`;
  assert.equal(
    withSourcePlaces(stack),
    `Error: no\n    at write (${join(folder, "src/node.ts")}:3:5)\n    at async ${join(folder, "src/node.ts")}:5:1\n    at read (${other}:7:8)\n    at node:internal/timers:1:2`,
  );
});
