/** Handles over a lock service and a router that are scripted here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, ok, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { OperationKind, Router } from "../routing/router.ts";
import { type HandleStepInit, Handles } from "./handles.ts";
import type { Trees } from "./trees.ts";

const name = { account: "acct", container: "~s", containerIncarnation: 1n, blob: "f" };
const limits = { deadlineMs: 10_000 };
const refusedOne = ok({ case: "error", value: { code: "SharingViolation" } });

class Bench {
  nowMs = 0;
  asked = 0;
  /** Sessions that hold their lease, each with epoch 3; undefined: the lock service does not answer. */
  live: ReadonlySet<string> | undefined = new Set(["a", "b"]);
  held: { readonly session: string; readonly sessionEpoch: bigint }[] = [];
  readonly handles: Handles;

  constructor() {
    const getLease = async ({ name: lease }: { readonly name: string }) => {
      this.asked++;
      const ended = this.live?.has(lease.slice("files/".length)) === false;
      return this.live ? ok({ leaseEpoch: 3n, ended }) : refused("unavailable", "notReady", "no lock service");
    };
    const clock = { monotonicMs: () => this.nowMs, wallMs: () => this.nowMs };
    const world = { clock, rules: allRules, transport: { client: () => ({ getLease }) } } as unknown as World;
    const execute = async ({ value }: OperationKind) => {
      const { action, session } = value as HandleStepInit;
      if (action === "end") this.held = this.held.filter((one) => one.session !== session);
      return ok({ case: "handles", value: { handles: [...this.held], pending: false, directoryId: "", entryName: "" } });
    };
    this.handles = new Handles(world, { execute } as unknown as Router, {} as Trees, { lockService: "lock-service" });
  }
}

test("handles, many requests meet those of two sessions at once: the lock service is asked once for each, and again after a while", async () => {
  const bench = new Bench();
  bench.held = Array.from({ length: 100 }, (_, at) => ({ session: at % 2 === 0 ? "a" : "b", sessionEpoch: 3n }));
  const meets = () => bench.handles.beside({ case: "getBlob", value: { name } } as OperationKind, limits, async () => refusedOne as never);
  await Promise.all(Array.from({ length: 50 }, meets));
  await meets();
  assert.deepEqual([bench.asked, bench.held.length], [2, 100]);
  bench.live = new Set(["a"]);
  bench.nowMs += 1_000;
  await meets();
  assert.deepEqual([bench.asked, bench.held.length], [4, 50]);
});

test("handles, no time is left: the lock service is not asked about sessions any more", async () => {
  const bench = new Bench();
  bench.live = new Set();
  bench.held = [{ session: "a", sessionEpoch: 3n }];
  bench.nowMs = limits.deadlineMs;
  assert.equal(await bench.handles.settle(name, limits), false);
  assert.equal(bench.asked, 0);
});

test("handles, the lock service does not answer: whether a session lives is not known, and its handles stay", async () => {
  const bench = new Bench();
  assert.deepEqual([await bench.handles.isLive("a", 3n), await bench.handles.isLive("a", 2n)], [true, false]);
  bench.live = undefined;
  bench.held = [{ session: "a", sessionEpoch: 3n }];
  assert.equal(await bench.handles.isLive("a", 3n), undefined);
  assert.deepEqual([await bench.handles.settle(name, limits), bench.held.length], [false, 1]);
});

test("handles, a file was removed or closed by somebody else after it was met: the operation is tried again, and tells what is there now", async () => {
  const bench = new Bench();
  const answers = [refusedOne, ok({ case: "error", value: { code: "BlobNotFound" } })];
  const work = async () => (answers.shift() ?? assert.fail("asked once more")) as never;
  const outcome = await bench.handles.beside({ case: "getBlob", value: { name } } as OperationKind, limits, work);
  assert.ok(outcome.ok && outcome.value.case === "error");
  assert.equal(outcome.value.value.code, "BlobNotFound");
  assert.deepEqual(bench.handles.figures.refused, { SharingViolation: 1 });
});
