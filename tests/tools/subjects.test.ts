/** The check of commit subjects looks at commits, and refuses those that are too long or name no room. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { run } from "./commands.ts";
import { firstChecked, wrongSubjects } from "./subjects.ts";

test("subjects: too long, without a room or without words is wrong", () => {
  const right = ["1a2b3c front-end: refuse early", "1a2b3c tests, lock-service: say it once", `1a2b3c cli: ${"x".repeat(67)}`];
  const wrong = ["1a2b3c Refuse early", "1a2b3c front end: refuse early", "1a2b3c cli:", `1a2b3c cli: ${"x".repeat(68)}`];
  assert.deepEqual(wrongSubjects([...right, ...wrong, ""].join("\n")), wrong);
});

test("subjects: the first commit that is checked is found in the history", async (t) => {
  const all = await run("git", ["rev-list", "--count", "HEAD"]);
  if (all.code !== 0 || Number(all.output) < 300) return t.skip("no history of the repository here");
  const first = (await run("git", firstChecked)).output.split("\n")[0] ?? "";
  assert.match(first, /^[0-9a-f]{40}$/);
  const checked = await run("git", ["rev-list", "--count", `${first}..HEAD`]);
  assert.ok(Number(checked.output) > 200, `${checked.output.trim()} commits are checked`);
});
