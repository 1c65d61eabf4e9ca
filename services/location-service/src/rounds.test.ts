import assert from "node:assert/strict";
import { test } from "node:test";
import type { AccountRecord, StampRecord } from "@stamp/geo";
import { Rounds } from "./rounds.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const account = (name: string) => ({ name, primary: "north-1", secondary: "south-1" }) as unknown as AccountRecord;

test("rounds: settings that are due while an account's question is under way are compared with its next question, once", async () => {
  const asked: boolean[] = [];
  let answer = (): void => {};
  const rounds = new Rounds({
    stamps: () => [],
    accounts: () => [account("acme")],
    askStamp: async () => {},
    askAccount: (_account, withSettings) => {
      asked.push(withSettings);
      return new Promise<void>((resolve) => {
        answer = resolve;
      });
    },
    onThrown: () => {},
  });
  for (const withSettings of [false, true, false]) rounds.begin(withSettings);
  assert.deepEqual(asked, [false]);
  for (let round = 0; round < 2; round++) {
    answer();
    await turn();
    rounds.begin(false);
  }
  assert.deepEqual(asked, [false, true, false]);
});

test("rounds: a question that throws is told with its name, ends nothing, and is asked again in the next round", async () => {
  const told: string[] = [];
  const asked: string[] = [];
  const rounds = new Rounds({
    stamps: () => [{ name: "north-1" }, { name: "south-1" }] as unknown as StampRecord[],
    accounts: () => [],
    askStamp: async ({ name }) => {
      asked.push(name);
      if (name === "north-1") throw new Error("a number out of range");
    },
    askAccount: async () => {},
    onThrown: (what, error) => void told.push(`${what}: ${String(error)}`),
  });
  for (let round = 0; round < 2; round++) {
    rounds.begin(false);
    await turn();
  }
  assert.deepEqual(told, Array(2).fill("stamp north-1: Error: a number out of range"));
  assert.deepEqual(asked, ["north-1", "south-1", "north-1", "south-1"]);
});
