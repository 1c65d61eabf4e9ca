import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, toHex } from "@stamp/base";
import { messagesPrefix, seedMarkOf, shippedNames } from "@stamp/objects";
import { seedMarkKey } from "@stamp/range-partition";

test("operations on messages look for the seed mark where a seeding writes it", () => {
  const messages = messagesPrefix(allRules, { account: "acct", queue: "jobs", incarnation: 7 });
  assert.equal(toHex(seedMarkOf(messages)), toHex(seedMarkKey(messages)));
  // The PartitionName of the messages, as shipping knows it, is what the mark begins with.
  assert.equal(toHex(shippedNames("acct")(seedMarkOf(messages)) ?? new Uint8Array()), toHex(messages));
});
