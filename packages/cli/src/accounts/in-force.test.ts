/** Commands that change an account wait until the change is in force, or say where it is not. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused } from "@stamp/base";
import { untilInForce } from "./in-force.ts";

type Answer = Awaited<ReturnType<Parameters<typeof untilInForce>[0]["ask"]>>;
const told = (fields: { readonly inForce: boolean; readonly waitMs: number; readonly where: string }): Answer => ok(fields as never);

/** Waits with a clock of its own. Returns what was said, and the number of questions. */
async function waited(answers: (asked: number, nowMs: number) => Answer): Promise<readonly [string, number]> {
  let [nowMs, asked] = [0, 0];
  const said = await untilInForce({
    ask: async () => answers(++asked, nowMs),
    nowMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
  });
  return [said, asked];
}

test("in force: a command ends when the change is in force, and not before", async () => {
  assert.deepEqual(await waited((asked) => told({ inForce: asked > 3, waitMs: 900, where: "" })), ["", 4]);
  const late = await waited((_, nowMs) => told({ inForce: nowMs > 9_000, waitMs: 0, where: "stamp b has not confirmed them" }));
  assert.equal(late[0], "");
});

test("in force: a command says where the change is not in force, and does not wait for ever", async () => {
  const [where] = await waited(() => told({ inForce: false, waitMs: 0, where: "stamp b has not confirmed them" }));
  assert.equal(where, "stamp b has not confirmed them");
  const [silent] = await waited(() => refused("unavailable", "notLeader", "no partition manager leads"));
  assert.equal(silent, "no partition manager leads");
});

test("in force: a partition manager of an older release does not say it, and is not waited for", async () => {
  assert.deepEqual(await waited(() => refused("unimplemented", "unknownMethod", "no such method")), ["", 1]);
});
