import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type EndedRequest, RequestTrace, type WantedTrace } from "./request-trace.ts";

const never = new AbortController().signal;
const all: WantedTrace = { account: "", operation: "", statusMin: 0, statusMax: 0, tookMinMs: 0 };
const put: EndedRequest = {
  endedMs: 1,
  requestId: "1",
  service: "blob",
  account: "acme",
  operation: "PutBlob",
  method: "PUT",
  target: "/acme/c/b",
  status: 201,
  errorCode: "",
  tookMs: 12,
  remoteAddress: "127.0.0.1:1",
};

test("request trace: a listener is told the requests that it wants, and no others", async () => {
  const trace = new RequestTrace();
  assert.equal(trace.isFollowed, false);
  const cases: [Partial<WantedTrace>, string][] = [
    [{}, "1 2 3"],
    [{ account: "acme" }, "1 2"],
    [{ operation: "BLOB" }, "1 3"],
    [{ statusMin: 400, statusMax: 499 }, "2"],
    [{ statusMin: 500 }, "3"],
    [{ tookMinMs: 12 }, "1 3"],
  ];
  const followings = cases.map(([wanted]) => trace.follow({ ...all, ...wanted }));
  assert.equal(trace.isFollowed, true);
  trace.tell(put);
  trace.tell({ ...put, requestId: "2", operation: "GetEntity", status: 404, tookMs: 11.9 });
  trace.tell({ ...put, requestId: "3", account: "other", status: 503, tookMs: 900 });
  for (const [index, [wanted, ids]] of cases.entries()) {
    const told = await followings[index]?.next(never);
    assert.deepEqual([told?.requests.map(({ requestId }) => requestId).join(" "), told?.missed], [ids, 0], JSON.stringify(wanted));
  }
  for (const each of followings) each?.close();
  assert.equal(trace.isFollowed, false);
});

test("request trace: who reads slowly holds up nothing, and hears how many are missing behind those that waited", async () => {
  const trace = new RequestTrace();
  const following = trace.follow(all);
  for (let sent = 0; sent < 2_500; sent++) trace.tell({ ...put, requestId: String(sent) });
  let read = 0;
  for (let missed = 0; missed === 0; ) {
    const told = await following?.next(never);
    assert.ok(told !== undefined && told.requests.length <= 200);
    assert.equal(told.requests[0]?.requestId, String(read));
    read += told.requests.length;
    missed = told.missed;
    if (missed > 0) assert.deepEqual([read, missed], [2_000, 500]);
  }
  const waiting = following?.next(never);
  trace.tell({ ...put, requestId: "next" });
  assert.deepEqual(await waiting, { requests: [{ ...put, requestId: "next" }], missed: 0 });
});

test("request trace: a listener that waits ends with its call or with the process, and leaves nothing at the call's signal", async () => {
  const trace = new RequestTrace();
  const call = new AbortController();
  const following = trace.follow(all);
  for (let sent = 0; sent < 10; sent++) {
    const waiting = following?.next(call.signal);
    trace.tell(put);
    assert.equal((await waiting)?.requests.length, 1);
  }
  assert.equal(getEventListeners(call.signal, "abort").length, 0);
  const aborted = following?.next(call.signal);
  call.abort();
  assert.deepEqual(await aborted, { requests: [], missed: 0 });
  const ended = trace.follow(all)?.next(never);
  trace.stop();
  assert.deepEqual(await ended, { requests: [], missed: 0 });
});

test("request trace: listeners and accounts that are counted are bounded; who leaves makes room", () => {
  const trace = new RequestTrace();
  const followings = Array.from({ length: 16 }, () => trace.follow(all));
  assert.equal(trace.follow(all), undefined);
  followings[0]?.close();
  assert.ok(trace.follow(all));
  for (let account = 0; account <= 1_000; account++) {
    trace.countsOf(`account${account}`).requests++;
    trace.countsOf("account0").requests++;
  }
  assert.equal(trace.accounts.length, 1_000);
  assert.deepEqual([trace.countsOf("account1000").requests, trace.countsOf("account0").requests], [1, 1_002]);
  assert.equal(trace.countsOf("account1").requests, 0, "not asked for longest");
});

test("request trace: what waits for slow listeners, and what is counted, keeps no longer text in memory", () => {
  setFlagsFromString("--expose-gc");
  const usedBytes = (): number => {
    (runInNewContext("gc") as () => void)();
    return process.memoryUsage().heapUsed;
  };
  const trace = new RequestTrace();
  trace.follow(all);
  const beforeBytes = usedBytes();
  for (let sent = 0; sent < 2_000; sent++) {
    // Parts of a text, as those of a batch are.
    const text = `${"m".repeat(20)} /account-${String(sent).padStart(9, "0")}/${"x".repeat(50_000)}`;
    const [method, target, account] = [text.slice(0, 20), text.slice(21), text.slice(22, 39)];
    trace.end({ method, target, remoteAddress: "" }, { ...put, account, counts: trace.countsOf(account) });
  }
  const grownBytes = usedBytes() - beforeBytes;
  assert.ok(grownBytes < 20 * 1024 * 1024, `${grownBytes} bytes`);
  assert.equal(trace.accounts.length, 1_000);
});
