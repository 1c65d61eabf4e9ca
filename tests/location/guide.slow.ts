/** The commands of docs/guides/geo.md, one after another as they stand there, on two stamps of real processes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { blocksOf } from "../tools/guide-blocks.ts";
import { twoStamps } from "./testing/two-stamps.ts";

const guide = "docs/guides/geo.md";
const notCompleteMaxMs = 120_000;

/** Commands of the guide that this test runs. The first one starts the stamps, which the test has done. */
function commandsHere(): readonly string[] {
  const blocks = blocksOf(guide).filter(({ reason = "" }) => reason.includes("tests/location/guide.slow.ts"));
  const lines = blocks.flatMap(({ commands }) => commands.split("\n"));
  const all = lines.map((line) => line.replace(/ #.*/, "").trim()).filter((line) => line !== "");
  assert.match(all[0] ?? "", /^\.\/stamp up -d --stamps 2 --data \.two$/);
  return all.slice(1);
}

test("guide of geo: every command works as it stands there", async (t) => {
  const commands = commandsHere();
  assert.ok(commands.length > 10, `${commands.length} commands`);
  const { stamp } = await twoStamps(t);
  for (const command of commands) {
    assert.match(command, /^\.\/stamp .* --data \.two$/);
    const args = command.split(" ").slice(1, -2);
    for (const startMs = performance.now(); ; await new Promise((resolve) => setTimeout(resolve, 1_000))) {
      const { code, output } = await stamp(...args);
      if (code === 0) break;
      // The guide says to wait for a complete copy.
      const waits = /is not complete: it is still seeded/.test(output) && performance.now() - startMs < notCompleteMaxMs;
      assert.ok(waits, `${command}: exit code ${code}: ${output}`);
    }
  }
});
