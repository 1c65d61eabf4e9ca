import assert from "node:assert/strict";
import { test } from "node:test";
import { FailureError, type Outcome, ok, refused, unknownOutcome } from "@stamp/base";
import { accountOperations } from "./account-operations.ts";

const never = new AbortController().signal;

/** Operations on a manager that notes what it is asked for. */
function world({ inForce = true, leaders = Number.POSITIVE_INFINITY, rotated = ok({ keys: ["secret"] }) as Outcome<object> } = {}) {
  const asked: string[] = [];
  let nowMs = 0;
  const noted = (name: string, answer: object) => async (request: object) => {
    asked.push(`${name} ${JSON.stringify(request)}`);
    return ok(answer);
  };
  const manager = {
    create: async ({ account }: { readonly account: string }) =>
      account === "taken1" ? refused("alreadyExists", "conflict", "account taken1 exists") : noted("create", {})({ account }),
    get: noted("get", { keys: ["key-1", "key-2"] }),
    rotateKey: async (request: object) => (await noted("rotateKey", {})(request)) && rotated,
    revokeDelegationKeys: noted("revoke", {}),
    setBlobSettings: noted("set", {}),
    getSettingsInForce: async () => ok({ inForce, where: "front-end-2", waitMs: 0 }),
  };
  const operations = accountOperations({
    accounts: async () => {
      if (leaders-- <= 0) throw new Error("no partition manager leads");
      return manager as never;
    },
    nowMs: () => nowMs,
    sleep: async (ms) => {
      nowMs += ms;
    },
  });
  const run = async (what: string, fields: object): Promise<object> => {
    const operation = operations[`/api/${what}`];
    assert.ok(operation !== undefined, what);
    return operation(fields as never, never);
  };
  return { run, asked };
}

test("console: accounts are created, rotated and set; only the question for keys tells keys", async () => {
  const { run, asked } = world();
  const account = "acme";
  assert.deepEqual(await run("create-account", { account }), {});
  assert.deepEqual(await run("rotate-key", { account, number: 2 }), { notInForce: "" });
  assert.deepEqual(await run("revoke-delegation", { account }), { notInForce: "" });
  assert.deepEqual(await run("set-account", { account, versioning: true, publicAccess: false, containerDays: 7 }), { notInForce: "" });
  assert.deepEqual(await run("show-keys", { account }), { keys: ["key-1", "key-2"] });
  assert.deepEqual(asked, [
    'create {"account":"acme"}',
    'rotateKey {"account":"acme","keyNumber":2,"newKey":""}',
    'revoke {"account":"acme"}',
    'set {"account":"acme","versioning":true,"allowPublicAccess":false,"containerDeleteRetentionDays":7}',
    'get {"account":"acme"}',
  ]);
});

test("console: a change that is not in force everywhere says where, and stays made", async () => {
  const { run, asked } = world({ inForce: false });
  assert.deepEqual(await run("rotate-key", { account: "acme", number: 1 }), { notInForce: "front-end-2" });
  assert.equal(asked.length, 1);
});

test("console: an operation with a wrong field asks the manager for nothing; a refusal is told in its words", async () => {
  const { run, asked } = world();
  const account = "acme";
  await assert.rejects(run("rotate-key", { account, number: 3 }), /number is a whole number, 1 to 2/);
  await assert.rejects(run("rotate-key", { number: 1 }), /names no account/);
  await assert.rejects(run("set-account", { account, versioning: "on", publicAccess: false, containerDays: 7 }), /has no versioning/);
  await assert.rejects(run("set-account", { account, versioning: true, publicAccess: false, containerDays: 366 }), /containerDays/);
  for (const wrong of [["acme"], { name: "acme" }, 7, null]) await assert.rejects(run("show-keys", { account: wrong }), /names no account/);
  await assert.rejects(run("create-account", { account: "taken1" }), /account taken1 exists/);
  assert.deepEqual(asked, []);
});

test("console: a change that was made is told as made, also when nobody can be asked whether it is in force", async () => {
  const { run, asked } = world({ leaders: 1 });
  assert.deepEqual(await run("rotate-key", { account: "acme", number: 1 }), { notInForce: "no partition manager leads" });
  assert.equal(asked.length, 1);
});

test("console: a change whose answer was lost is no failure", async () => {
  const lost = unknownOutcome("deadlineExceeded", "timeout", "no answer in 10 s");
  await assert.rejects(
    world({ rotated: lost }).run("rotate-key", { account: "acme", number: 1 }),
    (error) => error instanceof FailureError && error.failure.applied === "unknown",
  );
});

test("console: settings that the page does not name stay as they are", async () => {
  const { run, asked } = world();
  await run("set-account", { account: "acme", publicAccess: false });
  assert.deepEqual(asked, ['set {"account":"acme","allowPublicAccess":false}']);
  await assert.rejects(run("set-account", { account: "acme" }), /no setting was changed/);
});
