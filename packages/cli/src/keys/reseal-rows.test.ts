import assert from "node:assert/strict";
import { test } from "node:test";
import { type Failed, ok, refused } from "@stamp/base";
import { CommandError } from "../context.ts";
import { type ResealDoor, resealRows } from "./reseal-rows.ts";

const notServed = refused("failedPrecondition", "wrongPartition", "account-1 is not served here");

/** A stamp with two pages of rows. Gives `answers` first, one for each call; each pause takes a second. */
function stampWith(answers: readonly Failed[]) {
  const left = [...answers];
  const asked: string[] = [];
  let nowMs = 0;
  let leaders = 0;
  const reseal = async ({ marker }: { readonly marker: string }) => {
    asked.push(marker);
    const refusal = left.shift();
    if (refusal !== undefined) return refusal;
    return ok({ rows: [{ keyId: "new", accounts: 100 }], resealed: 100, nextMarker: marker === "" ? "m" : "" });
  };
  const door = {
    accounts: async () => {
      leaders += 1;
      return { reseal };
    },
    pause: async () => {
      nowMs += 1_000;
    },
    nowMs: () => nowMs,
    patienceMs: 60_000,
    tell: () => {},
  } as unknown as ResealDoor;
  return { door, asked, leaders: () => leaders };
}

test("reseal: a page that is not served for a while is asked for again, of whoever leads by then", async () => {
  const stamp = stampWith([notServed, refused("unavailable", "notLeader", "another one leads"), notServed]);
  assert.deepEqual(await resealRows(stamp.door, "new"), { rows: { new: 200 }, resealed: 200 });
  assert.deepEqual([stamp.asked, stamp.leaders()], [["", "", "", "", "m"], 4]);
});

test("reseal: it ends with the reason when no server comes, and at once for what does not pass", async () => {
  const never = stampWith(Array.from({ length: 100 }, () => notServed));
  await assert.rejects(resealRows(never.door, "new"), (error) => error instanceof CommandError && /account-1/.test(error.message));
  assert.equal(never.asked.length, 61);
  const refusing = stampWith([refused("permissionDenied", "unauthorized", "not your role")]);
  await assert.rejects(resealRows(refusing.door, "new"), CommandError);
  assert.equal(refusing.asked.length, 1);
});
