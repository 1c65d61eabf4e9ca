import { FailureError, ok, refused } from "@stamp/base";
import { FrontEnd } from "@stamp/wire";
import { sleep } from "../clock.ts";
import { check, checkEqual, thrownFailure } from "./conformance.ts";
import { answerOf, failureOf, servedPartly, type TransportTest, waitUntil } from "./transport-under-test.ts";

export function streamConformance(test: TransportTest): void {
  const timeoutMs = 5_000;

  test("a stream of answers comes in order and may be left early, which its handler sees", async ({ client, clock }, serve) => {
    let finished = "";
    const { address } = await serve(
      servedPartly(FrontEnd, {
        getBlob: async function* (request) {
          try {
            for (let i = 0; i < Number(request.endBytes); i++) yield { payload: new Uint8Array([i & 0xff, i >>> 8]) };
            finished = "complete";
          } finally {
            if (finished === "") finished = "left";
          }
        },
      }),
    );
    const frontEnd = client.client(address, FrontEnd);
    let next = 0;
    for await (const answer of frontEnd.getBlob({ endBytes: 500n }, { timeoutMs })) {
      checkEqual(answer.payload, new Uint8Array([next & 0xff, next >>> 8]), "answer");
      next += 1;
    }
    checkEqual([next, finished], [500, "complete"], "all of them");
    finished = "";
    let taken = 0;
    for await (const _ of frontEnd.getBlob({ endBytes: 1_000_000_000n }, { timeoutMs })) {
      taken += 1;
      if (taken === 3) break;
    }
    await waitUntil(clock, () => finished === "left", "the handler's iterator is returned");
  });

  test("a stream of answers that fails throws its failure after what came before", async ({ client }, serve) => {
    const { address } = await serve(
      servedPartly(FrontEnd, {
        getBlob: async function* (request) {
          yield { payload: new Uint8Array([1]) };
          if (request.blob === "bug") throw new Error("thrown on purpose");
          throw new FailureError({
            code: "notFound",
            reason: "damaged",
            message: "gone",
            applied: "no",
            details: { "x-ms-error-code": "BlobNotFound" },
          });
        },
      }),
    );
    const frontEnd = client.client(address, FrontEnd);
    for (const [blob, reason, applied] of [
      ["gone", "damaged", "no"],
      ["bug", "bug", "unknown"],
    ]) {
      let count = 0;
      const error = await thrownFailure(async () => {
        for await (const _ of frontEnd.getBlob({ blob: blob as string }, { timeoutMs })) count += 1;
      }, "failing stream");
      checkEqual([count, error.failure.reason, error.failure.applied], [1, reason, applied], "failure");
      if (blob === "gone") checkEqual(error.failure.details?.["x-ms-error-code"], "BlobNotFound", "details");
    }
  });

  test("a stream of requests comes in order and is answered once", async ({ client }, serve) => {
    const { address } = await serve(
      servedPartly(FrontEnd, {
        putBlob: async (requests) => {
          let bytes = 0;
          let name = "";
          for await (const request of requests) {
            if (name === "") name = request.blob;
            bytes += request.payload.length;
            if (request.payload[0] === 255) return refused("failedPrecondition", "conflict", "stop here", { "x-ms-error-code": "X" });
          }
          return ok({ name: `${name}:${bytes}` });
        },
      }),
    );
    const frontEnd = client.client(address, FrontEnd);
    const requests = async function* (count: number): AsyncIterable<{ blob?: string; payload: Uint8Array }> {
      for (let i = 0; i < count; i++)
        yield { ...(i === 0 ? { blob: "b" } : {}), payload: new Uint8Array(10_000).fill(i === 150 ? 255 : 1) };
    };
    checkEqual(answerOf(await frontEnd.putBlob(requests(100), { timeoutMs: 20_000 })).name, "b:1000000", "answer");
    checkEqual(answerOf(await frontEnd.putBlob(requests(0), { timeoutMs })).name, ":0", "answer to an empty stream");
    const failure = failureOf(await frontEnd.putBlob(requests(1_000_000), { timeoutMs: 20_000 }), "refused on the way");
    checkEqual([failure.reason, failure.applied, failure.details?.["x-ms-error-code"]], ["conflict", "no", "X"], "refused on the way");
  });

  test("a stream that nobody reads is slowed down", async ({ client, clock }, serve) => {
    let made = 0;
    const { address } = await serve(
      servedPartly(FrontEnd, {
        getBlob: async function* () {
          for (;;) {
            made += 1;
            yield { payload: new Uint8Array(256 * 1024) };
          }
        },
      }),
    );
    const iterator = client.client(address, FrontEnd).getBlob({}, { timeoutMs: 30_000 })[Symbol.asyncIterator]();
    await iterator.next();
    let before = -1;
    await waitUntil(
      clock,
      () => {
        const still = made === before;
        before = made;
        return still;
      },
      "the handler is held back",
    );
    check(made * 256 * 1024 <= 64 * 1024 * 1024, `${made} messages of 256 KiB were made for a reader of one`);
    await iterator.return?.();
  });

  test("a stream ends by its deadline", async ({ client, clock }, serve) => {
    let signal: AbortSignal | undefined;
    const { address } = await serve(
      servedPartly(FrontEnd, {
        getBlob: async function* (_request, context) {
          signal = context.signal;
          yield { payload: new Uint8Array([1]) };
          await sleep(clock, 600_000, context.signal);
        },
      }),
    );
    const error = await thrownFailure(async () => {
      for await (const _ of client.client(address, FrontEnd).getBlob({}, { timeoutMs: 1_000 }));
    }, "stream beyond its deadline");
    checkEqual([error.failure.code, error.failure.reason], ["deadlineExceeded", "timeout"], "failure");
    await waitUntil(clock, () => signal?.aborted === true, "the handler's signal is aborted");
  });
}
