import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { AccountSchema } from "@stamp/wire";
import { accountText, withoutKeys } from "./account-command.ts";

const secret = "c2VjcmV0LWtleQ==";
const account = create(AccountSchema, { name: "team", keys: [secret, secret], createdMs: 0n });

test("account: keys are printed by commands that are about them, and by no other, neither as text nor as JSON", () => {
  assert.match(accountText(account, "keys"), new RegExp(`key 1 +${secret}`));
  assert.doesNotMatch(accountText(account, "noKeys"), new RegExp(secret));
  assert.match(accountText(account, "noKeys"), /account +team/);
  assert.equal("keys" in withoutKeys(account), false);
});
