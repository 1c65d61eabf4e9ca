/** The commands of docs/guides/geo.md, one after another as they stand there, on two stamps of real processes. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { blocksOf } from "../../tools/guide-blocks.ts";
import { silenceDoors, type TwoStamps, until, untilCopy } from "../testing/two-stamps.ts";

const guide = "docs/guides/geo.md";
/** Account of the guide whose copy has to be complete before a failover. */
const account = "beta";
/** A copy may be seeded again between the look and the command. */
const triesMax = 5;
const migration = `account migrate ${account} --to north-1 --no-wait`;

/** Commands of the guide that this test runs. The first one starts the stamps, which the test has done. */
function commandsHere(): readonly string[] {
  const blocks = blocksOf(guide).filter(({ reason = "" }) => reason.includes("tests/location/pair/guide.ts"));
  const lines = blocks.flatMap(({ commands }) => commands.split("\n"));
  const all = lines.map((line) => line.replace(/ #.*/, "").trim()).filter((line) => line !== "");
  assert.match(all[0] ?? "", /^\.\/stamp up -d --stamps 2 --data \.two$/);
  return all.slice(1);
}

export async function guideIsRight(_t: TestContext, two: TwoStamps): Promise<void> {
  const commands = commandsHere();
  assert.ok(commands.length > 10, `${commands.length} commands`);
  assert.ok(
    commands.some((command) => command.includes(migration)),
    `the guide migrates: ${migration}`,
  );
  await until(
    "both stamps serve",
    () => two.stamp("status"),
    ({ output }) => bothServe(output),
  );
  let goOn = (): void => {};
  try {
    for (const command of commands) {
      assert.match(command, /^\.\/stamp .* --data \.two$/);
      const args = command.split(" ").slice(1, -2);
      // A migration is given up by the next command, however long that takes to start: its target takes nothing until then.
      if (command.includes(migration)) goOn = await silenceDoors(two, "north-1");
      await works(two, command, args);
      if (args[1] === "give-up") goOn();
    }
  } finally {
    goOn();
  }
}

/** Earlier tests killed processes, which `status` tells for 10 minutes as what needs attention. */
const bothServe = (output: string): boolean => output.match(/^(healthy|serving, and needs attention): /gm)?.length === 2;

async function works(two: TwoStamps, command: string, args: readonly string[]): Promise<void> {
  for (let tries = 1; ; tries++) {
    const { code, output } = await two.stamp(...args);
    if (code === 0 || (args[0] === "status" && bothServe(output))) return;
    // The guide says to wait for a complete copy, and for the rest of a forced failover.
    const isSeeding = /is not complete: it is still seeded/.test(output);
    const isDemoting = /\(forced\) of account beta is under way, at step demoting/.test(output);
    assert.ok((isSeeding || isDemoting) && tries <= triesMax, `${command}: exit code ${code}: ${output}`);
    if (isDemoting) await untilCopy(two, account, "the end of the failover", ({ kind }) => kind === "");
    else await untilCopy(two, account, "a complete copy", ({ seeded }) => seeded);
  }
}
