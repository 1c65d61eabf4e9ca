import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { FailureError } from "@stamp/base";
import type { Transport } from "@stamp/ports";
import { EndedRequestSchema, type FollowResponse, FollowResponseSchema } from "@stamp/wire";
import { firstOf, followRequests } from "./follow.ts";
import { statusesOf, traceLine } from "./trace-text.ts";

test("trace: a status is one, a class, or bounds", () => {
  assert.deepEqual(statusesOf("404"), { statusMin: 404, statusMax: 404 });
  assert.deepEqual(statusesOf("5XX"), { statusMin: 500, statusMax: 599 });
  assert.deepEqual(statusesOf("400-503"), { statusMin: 400, statusMax: 503 });
  for (const text of ["", "4", "4x", "600", "500-400", "400-", "xxx", " 404", "0"]) assert.equal(statusesOf(text), undefined, text);
});

test("trace: a line holds what a client sent without letting it move the cursor", () => {
  const request = create(EndedRequestSchema, {
    endedMs: BigInt(Date.parse("2026-11-29T10:11:12.345Z")),
    status: 404,
    tookMs: 3.25,
    service: "blob",
    method: "GET",
    target: "/acme/\u001b[2J\u202e",
    errorCode: "BlobNotFound",
    requestId: "id-1",
  });
  const line = traceLine(request);
  assert.match(line, /^10:11:12\.345 {2}404 {5}3\.3 ms {2}\(blob\) +- +GET \/acme\/\\u001b\[2J\\u202e {2}BlobNotFound {2}id-1$/);
});

/** A transport whose front-ends answer in turn with what a script says: messages, or the reason of a failure. */
function scripted(script: Readonly<Record<string, readonly (readonly FollowResponse[] | string)[]>>): Pick<Transport, "client"> {
  const asked = new Map<string, number>();
  const client = (address: string) => ({
    async *follow(_wanted: object, { signal }: { readonly signal: AbortSignal }) {
      const turn = asked.get(address) ?? 0;
      asked.set(address, turn + 1);
      const answer = script[address]?.[turn];
      if (answer === undefined) {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return;
      }
      if (typeof answer === "string")
        throw new FailureError({ code: "unavailable", reason: answer as never, message: answer, applied: "no" });
      yield* answer;
    },
  });
  return { client } as unknown as Pick<Transport, "client">;
}

const message = (ids: readonly string[], missed = 0n): FollowResponse =>
  create(FollowResponseSchema, { requests: ids.map((requestId) => ({ requestId })), missed });
const all = { account: "", operation: "", statusMin: 0, statusMax: 0, tookMinMs: 0 };

test("trace: a front-end that is away is told once, asked again, and told when it is back; the others go on", async () => {
  const stopped = new AbortController();
  const told: string[] = [];
  const notes: string[] = [];
  const could = await followRequests(all, {
    transport: scripted({
      a: [[message([]), message(["1"])], "connectionLost", "connectionLost", [message(["2"], 7n)]],
      b: ["unknownMethod"],
    }),
    frontEnds: [
      { name: "front-end-1", grpc: "a" },
      { name: "front-end-2", grpc: "b" },
    ],
    frontEndsNow: async () => [],
    told: async ({ requestId }, frontEnd) => void told.push(`${frontEnd} ${requestId}`),
    note: (text) => {
      notes.push(text);
      if (text.includes("missing")) stopped.abort();
    },
    sleep: () => new Promise((resolve) => setImmediate(resolve)),
    signal: stopped.signal,
  });
  assert.equal(could, 1);
  assert.deepEqual(told, ["front-end-1 1", "front-end-1 2"]);
  assert.deepEqual(notes, [
    "front-end-2 is of a release that does not tell its requests",
    "front-end-1 can't be followed, and is asked again every second: connectionLost",
    "front-end-1 is back",
    "7 requests of front-end-1 are missing here: they came faster than they were read",
  ]);
});

test("trace: a front-end that joins is followed from then on, once; a look that fails ends nothing", async () => {
  const stopped = new AbortController();
  const told: string[] = [];
  const joined = { name: "front-end-2", grpc: "b" };
  const looks = [async () => Promise.reject(new Error("the supervisor restarts")), async () => [joined], async () => [joined]];
  let looked = 0;
  const could = await followRequests(all, {
    transport: scripted({ a: [[message(["1"])]], b: [[message(["2"])], [message(["2 again"])]] }),
    frontEnds: [{ name: "front-end-1", grpc: "a" }],
    frontEndsNow: () => {
      const look = looks[looked++];
      if (look !== undefined) return look();
      stopped.abort();
      return Promise.resolve([]);
    },
    told: async ({ requestId }, frontEnd) => void told.push(`${frontEnd} ${requestId}`),
    note: () => {},
    // A front-end whose call has ended is asked again only at the end.
    sleep: (ms, signal) =>
      ms === 1_000
        ? new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }))
        : new Promise<void>((resolve) => setImmediate(resolve)),
    signal: stopped.signal,
  });
  assert.equal(could, 2);
  assert.deepEqual(told, ["front-end-1 1", "front-end-2 2"]);
});

test("trace: of two front-ends that tell at once no more requests are told than were asked for", async () => {
  const told: string[] = [];
  let ends = 0;
  const tell = firstOf(
    3,
    async ({ requestId }) => {
      await new Promise((resolve) => setImmediate(resolve));
      told.push(requestId);
    },
    () => {
      ends++;
      assert.equal(told.length, 3, "the last line is out before the end");
    },
  );
  const request = (requestId: string) => create(EndedRequestSchema, { requestId });
  await Promise.all(["1", "2", "3", "4", "5"].map((id) => tell(request(id), "any")));
  assert.deepEqual([told, ends], [["1", "2", "3"], 1]);
});
