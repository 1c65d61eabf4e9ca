/** Programs of developers refuse options that they do not have as every command does. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { root, runStamp } from "./commands.ts";

test("stamp: a program of developers names a wrong option in one line, with exit code 2, and runs nothing", async () => {
  const cases = ["test", "check", "land", "ci", "sim", "bench turns", "pack"].map((program) => [program, "--nonsense"]);
  cases.push(["sim", "--rules-off", "nix"]);
  for (const [program = "", ...args] of cases) {
    const { code, output } = await runStamp([...program.split(" "), ...args], { program: [process.execPath, join(root, "stamp.mjs")] });
    assert.equal(code, 2, `${program} ${args.join(" ")}: ${output}`);
    assert.match(output, new RegExp(`^stamp ${program.split(" ")[0]}: .* --help\\)\\n$`));
  }
});
