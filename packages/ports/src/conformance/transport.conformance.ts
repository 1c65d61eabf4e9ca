import type { Outcome } from "@stamp/base";
import { FailureError, ok, refused, unknownOutcome } from "@stamp/base";
import { ExtentNode, LockService } from "@stamp/wire";
import { sleep } from "../clock.ts";
import type { CallContext } from "../transport.ts";
import type { RegisterTest } from "./conformance.ts";
import { check, checkEqual } from "./conformance.ts";
import { streamConformance } from "./transport-streams.conformance.ts";
import { answerOf, failureOf, servedPartly, type TransportUnderTest, transportTests, waitUntil } from "./transport-under-test.ts";

export function transportConformance(register: RegisterTest, make: () => Promise<TransportUnderTest>): void {
  const test = transportTests(register, make);
  const timeoutMs = 5_000;

  test("a call brings the request to the handler and the answer back, with defaults filled in", async ({ client, clock }, serve) => {
    let context: CallContext | undefined;
    const { address } = await serve(
      servedPartly(LockService, {
        acquireLease: async (request, given) => {
          context = given;
          checkEqual(request.$typeName, "stamp.v1.AcquireLeaseRequest", "type of the request");
          checkEqual([request.name, request.holder, request.incarnation, request.termMs], ["a", "h", 7n, 0], "request");
          return ok({ leaseEpoch: 9n });
        },
      }),
    );
    const before = clock.monotonicMs();
    const outcome = await client
      .client(address, LockService)
      .acquireLease({ name: "a", holder: "h", incarnation: 7n }, { timeoutMs, metadata: { "x-who": "me" } });
    const grant = answerOf(outcome);
    checkEqual([grant.$typeName, grant.leaseEpoch, grant.termMs], ["stamp.v1.LeaseGrant", 9n, 0], "answer");
    check(context !== undefined, "no context");
    check(context.deadlineMs > before && context.deadlineMs <= clock.monotonicMs() + timeoutMs, "deadline");
    checkEqual([context.aborted, context.signal.aborted], [false, false], "signal");
    checkEqual(context.metadata["x-who"], "me", "metadata");
    check(context.peer.length > 0, "peer");
  });

  test("failures come back as they were given, with what they say about having happened", async ({ client }, serve) => {
    const { address } = await serve(
      servedPartly(LockService, {
        acquireLease: async () => refused("failedPrecondition", "notLeader", "ask another — ключ", { currentTerm: "7", where: "b" }),
        renewLease: async () => unknownOutcome("unavailable", "leaseLost", "perhaps"),
      }),
      servedPartly(ExtentNode, { append: async () => refused("resourceExhausted", "diskFull", "no room", { "x-ms-error-code": "A" }) }),
    );
    const lock = client.client(address, LockService);
    const no = failureOf(await lock.acquireLease({}, { timeoutMs }), "acquireLease");
    checkEqual([no.code, no.reason, no.message, no.applied], ["failedPrecondition", "notLeader", "ask another — ключ", "no"], "refused");
    checkEqual([no.details?.currentTerm, no.details?.where], ["7", "b"], "details");
    const unknown = failureOf(await lock.renewLease({}, { timeoutMs }), "renewLease");
    checkEqual([unknown.code, unknown.reason, unknown.applied], ["unavailable", "leaseLost", "unknown"], "unknown");
    checkEqual(unknown.details, undefined, "no details");
    const bulk = failureOf(await client.client(address, ExtentNode).append({}, { timeoutMs }), "append");
    checkEqual(
      [bulk.code, bulk.reason, bulk.applied, bulk.details?.["x-ms-error-code"]],
      ["resourceExhausted", "diskFull", "no", "A"],
      "bulk",
    );
  });

  test("a handler that throws or rejects is a bug of ours; the next call is served", async ({ client }, serve) => {
    const { address } = await serve(
      servedPartly(LockService, {
        acquireLease: () => {
          throw new Error("thrown on purpose");
        },
        renewLease: async () => {
          throw new Error("rejected on purpose");
        },
        getLease: async () => {
          throw new FailureError({ code: "notFound", reason: "leaseEnded", message: "thrown failure", applied: "no" });
        },
        releaseLease: async () => ok({ holder: "still here" }),
      }),
    );
    const lock = client.client(address, LockService);
    for (const call of [lock.acquireLease, lock.renewLease]) {
      const failure = failureOf(await call({}, { timeoutMs }), "throwing handler");
      checkEqual([failure.code, failure.reason, failure.applied], ["internal", "bug", "unknown"], "failure");
    }
    const failure = failureOf(await lock.getLease({}, { timeoutMs }), "a thrown FailureError");
    checkEqual(
      [failure.code, failure.reason, failure.applied],
      ["notFound", "leaseEnded", "no"],
      "a thrown FailureError keeps its failure",
    );
    checkEqual(answerOf(await lock.releaseLease({}, { timeoutMs })).holder, "still here", "the next call");
  });

  test("handlers start in the order the calls were made, over methods of one lane; answers come in any order", async (given, serve) => {
    const { client, clock } = given;
    const started: number[] = [];
    const answered: number[] = [];
    const handle = async (request: { leaseEpoch: bigint }): Promise<Outcome<{ leaseEpoch: bigint }>> => {
      started.push(Number(request.leaseEpoch));
      await sleep(clock, Number(request.leaseEpoch) % 7);
      return ok({ leaseEpoch: request.leaseEpoch });
    };
    const { address } = await serve(servedPartly(LockService, { renewLease: handle, releaseLease: handle, refuseRenewals: handle }));
    const lock = client.client(address, LockService);
    const count = 300;
    const calls: Promise<void>[] = [];
    for (let i = 0; i < count; i++) {
      const call = [lock.renewLease, lock.releaseLease, lock.refuseRenewals][i % 3] as typeof lock.renewLease;
      calls.push(
        call({ leaseEpoch: BigInt(i) }, { timeoutMs: 20_000 }).then((outcome) => {
          checkEqual(answerOf(outcome).leaseEpoch, BigInt(i), "each call gets its own answer");
          answered.push(i);
        }),
      );
      if (i % 50 === 49) await sleep(clock, 1);
    }
    await Promise.all(calls);
    const inOrder = Array.from({ length: count }, (_, i) => i);
    checkEqual(started, inOrder, "order of starting");
    check(
      answered.some((value, i) => value !== i),
      "answers waited for each other",
    );
  });

  test("payloads go both ways unchanged, of every size, in order", async ({ client }, serve) => {
    const lengths: number[] = [];
    const { address } = await serve(
      servedPartly(ExtentNode, {
        append: async (request) => {
          lengths.push(request.payload.reduce((sum, block) => sum + block.length, 0));
          let sum = 0;
          for (const block of request.payload) for (let i = 0; i < block.length; i += 997) sum += block[i] as number;
          return ok({ offsetsBytes: request.payload.map((block) => BigInt(block.length)), endBytes: BigInt(sum) });
        },
        read: async (request) => ok({ payload: new Uint8Array(request.lengthBytes).fill(Number(request.offsetBytes)) }),
        replicate: async (request) => {
          const slices = request.payload;
          checkEqual([slices.length, slices[1]?.[5], request.checksum, request.extentId], [2, 6, 0xfedcba98, 2n ** 52n], "fields");
          return ok({ durableBytes: request.offsetBytes + BigInt((slices[0]?.length ?? 0) + (slices[1]?.length ?? 0)) });
        },
      }),
    );
    const node = client.client(address, ExtentNode);
    const shapes = [[1], [0], [], [127], [128], [16_383, 16_384, 3], [70_000, 0, 1], [4 * 1024 * 1024, 4 * 1024 * 1024 - 9]];
    const appends = shapes.map((shape, n) => {
      const payload = shape.map((length) => new Uint8Array(length).fill(n + 1));
      let sum = 0;
      for (const block of payload) for (let i = 0; i < block.length; i += 997) sum += n + 1;
      return node.append({ extentId: 1n, expectedOffsetBytes: BigInt(n), payload }, { timeoutMs: 20_000 }).then((outcome) => {
        const answer = answerOf(outcome);
        checkEqual([...answer.offsetsBytes], shape.map(BigInt), `blocks of shape ${n}`);
        checkEqual(answer.endBytes, BigInt(sum), `bytes of shape ${n}`);
      });
    });
    await Promise.all(appends);
    checkEqual(
      lengths,
      shapes.map((shape) => shape.reduce((sum, length) => sum + length, 0)),
      "order",
    );
    for (const length of [0, 1, 4096, 3_000_000]) {
      const read = answerOf(await node.read({ offsetBytes: 9n, lengthBytes: length }, { timeoutMs: 20_000 }));
      checkEqual(read.payload.length, length, "length of an answer's payload");
      check(
        read.payload.every((byte) => byte === 9),
        "bytes of an answer's payload",
      );
    }
    const pattern = Uint8Array.from({ length: 100_000 }, (_, i) => i & 0xff);
    const request = { extentId: 2n ** 52n, checksum: 0xfedcba98, offsetBytes: 10n, payload: [pattern.subarray(0, 1), pattern.subarray(1)] };
    checkEqual(answerOf(await node.replicate(request, { timeoutMs })).durableBytes, 100_010n, "replicate");
  });

  test("a caller always gets an answer by its deadline; the handler sees it pass", async ({ client, clock }, serve) => {
    let context: CallContext | undefined;
    const { address } = await serve(
      servedPartly(LockService, {
        getLease: (_request, given) => {
          context = given;
          return new Promise(() => {});
        },
        listLeases: async () => ok({}),
      }),
    );
    const lock = client.client(address, LockService);
    answerOf(await lock.listLeases({}, { timeoutMs }));
    const start = clock.monotonicMs();
    const failure = failureOf(await lock.getLease({}, { timeoutMs: 60 }), "getLease");
    checkEqual([failure.code, failure.reason, failure.applied], ["deadlineExceeded", "timeout", "unknown"], "failure");
    check(clock.monotonicMs() - start >= 55, "before its deadline");
    // Nobody had asked for its signal before.
    await waitUntil(clock, () => context?.aborted === true && context.signal.aborted, "the handler's call is aborted");
    const never = failureOf(await lock.getLease({}, { timeoutMs: 0 }), "no time left");
    checkEqual([never.reason, never.applied], ["timeout", "no"], "a call with no time left is not made");
    answerOf(await lock.listLeases({}, { timeoutMs }));
  });

  test("a caller that gives up gets its answer at once; the handler sees it", async ({ client, clock }, serve) => {
    let context: CallContext | undefined;
    const { address } = await serve(
      servedPartly(LockService, {
        getLease: (_request, given) => {
          context = given;
          return new Promise(() => {});
        },
      }),
    );
    const lock = client.client(address, LockService);
    const stop = new AbortController();
    const pending = lock.getLease({}, { timeoutMs: 60_000, signal: stop.signal });
    await waitUntil(clock, () => context?.signal.aborted === false, "the handler runs");
    stop.abort();
    const failure = failureOf(await pending, "aborted call");
    checkEqual([failure.code, failure.reason, failure.applied], ["cancelled", "cancelled", "unknown"], "failure");
    await waitUntil(clock, () => context?.aborted === true && context.signal.aborted, "the handler's call is aborted");
    const before = failureOf(await lock.getLease({}, { timeoutMs, signal: stop.signal }), "aborted before");
    checkEqual([before.reason, before.applied], ["cancelled", "no"], "a call aborted before it was made");
  });

  test("where nobody listens a call fails with connectFailed, and it was not applied", async ({ client, absent }) => {
    for (let i = 0; i < 3; i++) {
      const failure = failureOf(await client.client(absent, LockService).getLease({}, { timeoutMs }), "getLease");
      checkEqual([failure.code, failure.reason, failure.applied], ["unavailable", "connectFailed", "no"], "failure");
    }
  });

  test("a service that is not served there is an unknown method, not applied", async ({ client }, serve) => {
    const { address } = await serve(servedPartly(LockService, {}));
    const failure = failureOf(await client.client(address, ExtentNode).append({}, { timeoutMs }), "append");
    checkEqual([failure.code, failure.reason, failure.applied], ["unimplemented", "unknownMethod", "no"], "failure");
  });

  test("when the caller closes, calls that it has sent end, and their handlers see it", async ({ client, clock }, serve) => {
    const contexts: CallContext[] = [];
    const { address } = await serve(
      servedPartly(LockService, {
        getLease: (_request, context) => {
          contexts.push(context);
          return new Promise<never>(() => {});
        },
      }),
    );
    const pending = client.client(address, LockService).getLease({}, { timeoutMs });
    await waitUntil(clock, () => contexts.length === 1, "the handler runs");
    await client.close();
    const { applied, code } = failureOf(await pending, "in progress");
    checkEqual([applied, code === "deadlineExceeded"], ["unknown", false], "in progress");
    await waitUntil(clock, () => contexts[0]?.aborted === true, "the handler sees that its caller is gone");
  });

  test("when the listener closes, calls in progress end as unknown and later ones as not applied; then it serves again", async (given, serve) => {
    const { client, clock } = given;
    let running = 0;
    const handlers = {
      getLease: () => {
        running += 1;
        return new Promise<never>(() => {});
      },
      listLeases: async () => ok({}),
    };
    const listener = await serve(servedPartly(LockService, handlers));
    const lock = client.client(listener.address, LockService);
    const pending = lock.getLease({}, { timeoutMs: 60_000 });
    await waitUntil(clock, () => running === 1, "the handler runs");
    await listener.close(0);
    const failure = failureOf(await pending, "in progress");
    checkEqual(failure.applied, "unknown", `in progress (${failure.reason})`);
    const later = failureOf(await lock.listLeases({}, { timeoutMs: 2_000 }), "after the close");
    checkEqual(later.applied, "no", `after the close (${later.reason})`);
    const again = await given.server.serve(listener.address, [servedPartly(LockService, handlers)]);
    try {
      checkEqual(again.address, listener.address, "the same address");
      let served = false;
      for (let i = 0; i < 50 && !served; i++) {
        served = (await lock.listLeases({}, { timeoutMs: 2_000 })).ok;
        if (!served) await sleep(clock, 20);
      }
      check(served, "not served again");
    } finally {
      await again.close(0);
    }
  });

  streamConformance(test);
}
