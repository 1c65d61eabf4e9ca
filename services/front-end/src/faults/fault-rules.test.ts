/** Tests of the requests that a fault rule acts on. What clients see of it: packages/embedded/src/faults.test.ts. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatRfc1123 } from "@stamp/azure-rest";
import { type Answer, respond } from "../http/exchange.ts";
import { CountedClock, settled } from "../testing/clock.ts";
import { faultNames } from "./fault-rule.ts";
import { type FaultedRequest, FaultRules, faultRulesMax } from "./fault-rules.ts";

const request: FaultedRequest = {
  account: "acme",
  service: "blob",
  operation: "PutBlob",
  headers: { "x-ms-client-request-id": "17" },
  secondary: false,
  signal: new AbortController().signal,
};

function rulesOf(...rules: readonly object[]) {
  const clock = new CountedClock();
  const held = new FaultRules(clock);
  for (const rule of rules) assert.deepEqual(held.add(rule).ok, true, JSON.stringify(rule));
  let served = 0;
  const ask = async (change: Partial<FaultedRequest> = {}, answer: Answer = respond(201)): Promise<string> => {
    const before = served;
    const given = await held.around({ ...request, ...change }, async () => {
      served++;
      return answer;
    });
    return `${given.ok ? given.value.status : given.error.code}${served > before ? ", served" : ""}`;
  };
  return { clock, held, ask };
}

test("fault rules: each condition alone decides", async () => {
  const fits: readonly (readonly [object, Partial<FaultedRequest>])[] = [
    [{ account: "acme" }, { account: "other" }],
    [{ service: "blob" }, { service: "queue" }],
    [{ operation: "PutBlob" }, { operation: "GetBlob" }],
    [{ header: "X-Ms-Client-Request-Id" }, { headers: {} }],
    [{ header: "x-ms-client-request-id: 17" }, { headers: { "x-ms-client-request-id": "18" } }],
  ];
  for (const [condition, other] of fits) {
    const { ask } = rulesOf({ fault: "busy", ...condition });
    assert.equal(await ask(), "ServerBusy", JSON.stringify(condition));
    assert.equal(await ask(other), "201, served", JSON.stringify(condition));
  }
});

test("fault rules: a share is spread evenly, a count ends the rule, a removed rule does nothing", async () => {
  const shared = rulesOf({ fault: "busy", share: 0.3 });
  const answers: string[] = [];
  for (let i = 0; i < 100; i++) answers.push(await shared.ask());
  for (let i = 0; i < 100; i += 10) assert.equal(answers.slice(i, i + 10).filter((each) => each === "ServerBusy").length, 3, `from ${i}`);
  const counted = rulesOf({ fault: "busy", count: 2, id: "two" });
  assert.deepEqual([await counted.ask(), await counted.ask(), await counted.ask()], ["ServerBusy", "ServerBusy", "201, served"]);
  assert.deepEqual(
    counted.held.list().map(({ rule, hits, over }) => [rule.id, hits, over]),
    [["two", 2, true]],
  );
  assert.deepEqual(counted.held.figures, { rules: 0, hits: 2 }, "nothing to warn of any more");
  const removed = rulesOf({ fault: "busy" });
  assert.equal(removed.held.remove(), 1);
  assert.equal(removed.held.any, false);
  assert.equal(await removed.ask(), "201, served");
});

test("fault rules: a time window begins and ends", async () => {
  const { clock, ask } = rulesOf({ fault: "busy", startsAfterMs: 100, endsAfterMs: 300 });
  const answers: string[] = [];
  for (const ms of [99, 1, 199, 1]) {
    await clock.pass(ms);
    answers.push(await ask());
  }
  assert.deepEqual(answers, ["201, served", "ServerBusy", "ServerBusy", "201, served"]);
});

test("fault rules: delays add up before the first rule of another kind, and end when the client goes away", async () => {
  const { clock, ask } = rulesOf(
    { fault: "delay", delayMs: 100 },
    { fault: "delay", delayMs: 50 },
    { fault: "busy" },
    { fault: "error-before" },
  );
  let answer = "";
  const asked = ask().then((given) => {
    answer = given;
  });
  for (const [ms, expected] of [
    [149, ""],
    [1, "ServerBusy"],
  ] as const) {
    await clock.pass(ms);
    await settled();
    assert.equal(answer, expected);
  }
  await asked;
  const leaves = new AbortController();
  const left = ask({ signal: leaves.signal });
  leaves.abort();
  assert.equal(await left, "InvalidInput");
});

test("fault rules: a throttle lets its rate through, a second's worth at once", async () => {
  const { clock, ask } = rulesOf({ fault: "throttle", perSecond: 2 });
  const passed = async (): Promise<number> =>
    [await ask(), await ask(), await ask(), await ask()].filter((each) => each !== "ServerBusy").length;
  assert.equal(await passed(), 2);
  await clock.pass(500);
  assert.equal(await passed(), 1);
  await clock.pass(60_000);
  assert.equal(await passed(), 2);
});

test("fault rules: an error after the commit leaves an operation's own error alone, and does not count it", async () => {
  const { held, ask } = rulesOf({ fault: "error-after", count: 1 });
  const own: Answer = { ok: false, error: { code: "BlobNotFound", status: 404, message: "", details: {}, headers: {} } };
  assert.equal(await ask({}, own), "BlobNotFound, served");
  assert.equal(held.list()[0]?.hits, 0);
  assert.equal(await ask(), "InternalError, served");
  assert.equal(await ask(), "201, served");
});

test("fault rules: a stale secondary misses what was written lately, by Last-Modified or by the ETag of an entity", async () => {
  const { clock, held, ask } = rulesOf({ fault: "stale-secondary", behindMs: 10_000, account: "acme" });
  await clock.pass(100_000);
  const secondary = { secondary: true, operation: "GetBlob" };
  const blobOf = (ms: number): Answer => respond(200, { "Last-Modified": formatRfc1123(ms) });
  const entityOf = (ms: number): Answer => respond(200, { ETag: `W/"datetime'${new Date(ms).toISOString().replaceAll(":", "%3A")}'"` });
  assert.equal(await ask(secondary, blobOf(95_000)), "BlobNotFound, served");
  assert.equal(await ask(secondary, blobOf(80_000)), "200, served");
  assert.equal(await ask({ ...secondary, operation: "GetContainerProperties" }, blobOf(95_000)), "ContainerNotFound, served");
  const table = { ...secondary, service: "table", operation: "QueryEntity" } as const;
  assert.equal(await ask(table, entityOf(95_000)), "ResourceNotFound, served");
  assert.equal(await ask(table, entityOf(80_000)), "200, served");
  assert.equal(await ask({ operation: "GetBlob" }, blobOf(95_000)), "200, served");
  assert.deepEqual([held.servesSecondary("acme", "blob"), held.servesSecondary("other", "blob")], [true, false]);
});

test("fault rules: their number is bounded", () => {
  const { held } = rulesOf(...Array.from({ length: faultRulesMax }, () => ({ fault: "busy" })));
  const more = held.add({ fault: "busy" });
  assert.match(more.ok ? "" : more.failure.message, /100 fault rules, which is the most/);
  assert.equal(faultNames.length, 7);
});

test("fault rules: a request that waits goes on at once when its rule is removed, and meets no other that is gone", async () => {
  const { held, ask } = rulesOf({ fault: "delay", delayMs: 100_000, id: "slow" }, { fault: "busy", id: "busy" });
  const [one, other] = [ask(), ask()];
  assert.equal(held.remove("slow"), 1);
  assert.equal(await one, "ServerBusy");
  assert.equal(await other, "ServerBusy");
  held.add({ fault: "delay", delayMs: 100_000 });
  held.remove("busy");
  held.add({ fault: "busy" });
  const last = ask();
  assert.equal(held.remove(), 2);
  assert.equal(await last, "201, served");
});

test("fault rules: all delays of a request together end before its connection would", async () => {
  const refused = new FaultRules(new CountedClock()).add({ fault: "delay", delayMs: 100_001 });
  assert.match(refused.ok ? "" : refused.failure.message, /delayMs/);
  const { clock, ask } = rulesOf({ fault: "delay", delayMs: 60_000 }, { fault: "delay", delayMs: 60_000 }, { fault: "delay", delayMs: 5 });
  let answer = "";
  const asked = ask().then((given) => {
    answer = given;
  });
  for (const ms of [60_000, 39_999]) {
    await clock.pass(ms);
    await settled();
    assert.equal(answer, "");
  }
  await clock.pass(1);
  await asked;
  assert.equal(answer, "201, served");
});

test("fault rules: a body that is not longer than its cut is sent whole, and not counted", async () => {
  const { held, ask } = rulesOf({ fault: "cut", afterBytes: 5, count: 1 });
  const streamed = (text: string): Answer => respond(200, { "Content-Length": String(text.length) }, once(Buffer.from(text)));
  for (const whole of [streamed("12345"), respond(200, {}, Buffer.from("12345"))]) {
    const given = await held.around(request, async () => whole);
    assert.equal(given.ok && given.value, whole.ok && whole.value);
  }
  assert.equal(held.list()[0]?.hits, 0);
  assert.equal(await ask({}, streamed("123456")), "200, served");
  assert.equal(held.list()[0]?.hits, 1);
});

async function* once(body: Uint8Array): AsyncGenerator<Uint8Array> {
  yield body;
}
