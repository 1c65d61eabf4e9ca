/** Transactions over a commit queue whose log the test drives. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Failed, Histogram, type Outcome, ok, refused, unwrap, utf8 } from "@stamp/base";
import type { OwnedStream, Place } from "@stamp/stream-client";
import { Simulation } from "@stamp/virtual-time";
import { put } from "../testing/harness.ts";
import { GroupCommit } from "./group-commit.ts";
import { type TransactionHost, Transactions } from "./transactions.ts";

/** Transactions whose log acknowledges appends when `acknowledge` is called; from then on at once. */
function makeTransactions(simulation: Simulation, overdueBytesMax = 1 << 20) {
  const world = simulation.world("server");
  const acknowledged = Promise.withResolvers<void>();
  const place: Place = { extentId: 1, offsetBytes: 0, lengthBytes: 100 };
  const log = {
    noRoom: undefined as Failed | undefined,
    append: async () => {
      await acknowledged.promise;
      return ok([place]);
    },
  };
  const made = (): Histogram => new Histogram(world.clock);
  const commit = new GroupCommit(world, log as unknown as OwnedStream, {
    ...{ ownerEpoch: 1, groupBytesMax: 1 << 20, overdueBytesMax, lastSequence: 0, lastTicket: 0, appends: made() },
    apply: () => {},
    room: async () => {},
    onLost: () => assert.fail("not lost"),
  });
  const around: Partial<TransactionHost> = {
    ...{ rangeId: "r1", lowKey: utf8(""), highKey: utf8("~"), transactionsMax: 100, commit },
    phases: { turn: made(), decide: made(), commit: made() },
    closed: () => undefined,
    ended: () => undefined,
    get: async () => undefined,
    lead: () => 0,
  };
  const transactions = new Transactions(world, around as TransactionHost);
  /** Writes the row `q`, pipelined. */
  const write = (timeoutMs = 60_000): Promise<Outcome<string>> =>
    transactions.run(utf8("q"), async () => ({ writes: [put("q", "v".repeat(300))], result: "done" }), { timeoutMs, pipelined: true });
  return { clock: world.clock, log, transactions, write, acknowledge: acknowledged.resolve };
}

test("pipelined: full disks refuse a write at once, also if an earlier write of its lock key is not durable", async () => {
  const simulation = new Simulation({ seed: 1 });
  await simulation.run(async () => {
    const { clock, log, transactions, write, acknowledge } = makeTransactions(simulation);
    const before = write();
    await simulation.sleep(1);
    log.noRoom = refused("resourceExhausted", "noPlacement", "no node has room");
    const beganMs = clock.monotonicMs();
    const outcome = await write(5_000);
    assert.ok(!outcome.ok && outcome.failure.reason === "noPlacement" && outcome.failure.applied === "no");
    assert.equal(clock.monotonicMs(), beganMs, "it waited for nothing");
    assert.equal(transactions.inProgress, 1);
    log.noRoom = undefined;
    acknowledge();
    assert.deepEqual([unwrap(await before), unwrap(await write())], ["done", "done"]);
  });
});

test("pipelined: with more overdue commits than the bound allows, a write is refused at once", async () => {
  const simulation = new Simulation({ seed: 2 });
  await simulation.run(async () => {
    const { clock, transactions, write, acknowledge } = makeTransactions(simulation, 500);
    const overdue = await Promise.all([write(1_000), write(1_000)]);
    assert.deepEqual(
      overdue.map((one) => !one.ok && one.failure.applied),
      ["unknown", "unknown"],
    );
    const beganMs = clock.monotonicMs();
    const outcome = await write(5_000);
    assert.ok(!outcome.ok && outcome.failure.reason === "overloaded" && outcome.failure.applied === "no");
    assert.equal(clock.monotonicMs(), beganMs, "it waited for nothing");
    acknowledge();
    await transactions.untilOver();
    assert.equal(unwrap(await write()), "done");
  });
});
