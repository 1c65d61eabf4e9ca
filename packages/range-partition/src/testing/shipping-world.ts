/**
 * Two sets of ranges over one stream layer: a primary that is written, moved, split and merged, and a receiver that is moved and split.
 * Senders ship over a link that loses requests and answers, is slow, is cut, and delivers again what was delivered long before. After each
 * delivery the rows of the PartitionName are what its first commits made, and never fewer commits than before.
 */
import assert from "node:assert/strict";
import { fromUtf8, type Outcome, type RuleName, refused, unknownOutcome, unwrap, utf8 } from "@stamp/base";
import { sleep } from "@stamp/ports";
import { applyShipped, type RangePartition, RangeSender, type Shipment } from "../index.ts";
import { FollowedWorld, follower, names, type Range, stateOf } from "./followed-world.ts";
import { rows, write } from "./harness.ts";
import { become } from "./reshape-harness.ts";

const nameOf = (key: Uint8Array): Uint8Array => key.subarray(0, 2);
const epoch = 7;

export class ShippingWorld extends FollowedWorld {
  receivers: Range[] = [];
  readonly #senders = new Map<RangePartition, RangeSender>();
  readonly #late = new Set<Promise<unknown>>();
  #cutUntilMs = 0;
  #faults = true;
  /** The first delivery that the judge refused: thrown by the next step, not into the sender. */
  #wrong: string | undefined;
  /** For each PartitionName: the receiver has at least so many commits. */
  readonly #seen = new Map<string, number>();
  shipped = 0;
  again = 0;

  constructor(seed: number, without: readonly RuleName[] = []) {
    super(seed, without);
  }

  override async begin(): Promise<void> {
    await super.begin();
    this.receivers = [await this.load({ rangeId: "s1", low: "", high: "~", merged: false }, true)];
    this.#startSenders();
  }

  get #clock() {
    return this.stamp.sim.world("link").clock;
  }

  /** Every range of the primary has a sender. Some senders of earlier owners go on until their range is lost. */
  #startSenders(): void {
    for (const [partition, sender] of this.#senders) {
      if (this.ranges.some((range) => range.partition === partition)) continue;
      if (!partition.followers.isOver && this.prng.chance(0.5)) continue;
      sender.stop();
      this.#senders.delete(partition);
    }
    for (const { partition } of this.ranges) {
      if (this.#senders.has(partition)) continue;
      const world = this.stamp.sim.world("sender");
      const limits = { windowBytesMax: 2_000, batchBytesMax: 400, batchesMax: 4 };
      const link = { ship: (shipment: Shipment) => this.#ship(shipment) };
      this.#senders.set(partition, new RangeSender(world, partition.followers, link, { follower, epoch, nameOf, limits, onEnd: () => {} }));
    }
  }

  async #ship(shipment: Shipment): Promise<Outcome<unknown>> {
    const { prng } = this;
    await sleep(this.#clock, prng.below(60));
    const lost = unknownOutcome("unavailable", "connectionLost", "lost");
    if (this.#clock.monotonicMs() < this.#cutUntilMs || (this.#faults && prng.chance(0.1))) return lost;
    if (this.#faults && prng.chance(0.15)) {
      const late = sleep(this.#clock, prng.below(4_000)).then(() => this.#deliver(shipment, true));
      this.#late.add(late);
      void late.then(() => this.#late.delete(late));
    }
    const applied = await this.#deliver(shipment, false);
    await sleep(this.#clock, prng.below(20));
    return this.#faults && prng.chance(0.1) ? lost : applied;
  }

  async #deliver(shipment: Shipment, again: boolean): Promise<Outcome<unknown>> {
    const name = fromUtf8(shipment.name).slice(0, 1);
    const range = this.receivers.find(({ low, high }) => name >= low && name < high);
    if (range === undefined) return refused("unavailable", "partitionLoading", "no range");
    const { partition } = range;
    const applied = await applyShipped(this.stamp.sim.world("door"), partition, shipment, { timeoutMs: 5_000 });
    if (!applied.ok || this.receivers.find((one) => one.partition === partition) === undefined) return applied;
    this.shipped += applied.value;
    if (again && applied.value === 0) this.again++;
    const held = await rows(partition.scan({ gte: utf8(`${name}/`), lt: utf8(`${name}0`) })).catch(() => undefined);
    if (held !== undefined) this.#judge(name, stateOf(new Map(held)));
    return applied;
  }

  #judge(name: string, state: string): void {
    const states = this.history.get(name) ?? [];
    const at = states.findIndex((one, i) => i >= (this.#seen.get(name) ?? 0) && one === state);
    // A commit may be durable and shipped before its writer hears of it.
    if (at < 0 && stateOf(this.model.get(name) ?? new Map()) === state) return;
    if (at >= 0) this.#seen.set(name, at);
    else this.#wrong ??= `seed ${this.seed}: the receiver has ${name} as it never was, or as it was before`;
  }

  override async follow(range?: Range, all = false): Promise<void> {
    if (!all) await sleep(this.#clock, this.prng.below(300));
    else if (range !== undefined) await this.#untilShipped(range);
  }

  async #untilShipped({ partition, rangeId }: Range): Promise<void> {
    const untilMs = this.#clock.monotonicMs() + 300_000;
    while ((partition.followers.status(follower)?.pending ?? 0) > 0) {
      assert.ok(this.#clock.monotonicMs() < untilMs, `seed ${this.seed}: ${rangeId} is not shipped at the end`);
      await sleep(this.#clock, 100);
    }
  }

  override async merge(): Promise<void> {
    // A merge that leaves commits behind ends the follower: log-followers.test.ts.
    for (const range of this.ranges) await this.#untilShipped(range);
    await super.merge();
    this.#startSenders();
    for (const range of this.ranges) await this.#untilShipped(range);
  }

  async moveReceiver(): Promise<void> {
    const range = this.prng.pick(this.receivers);
    const next = await this.load(range);
    this.receivers[this.receivers.indexOf(range)] = next;
  }

  async splitReceiver(): Promise<void> {
    const [range] = this.receivers;
    if (range === undefined || this.receivers.length > 1) return;
    unwrap(await range.partition.prepareToLeave(true));
    const children = [++this.epoch, ++this.epoch].map((one) => ({ rangeId: `s-e${one}`, epoch: one })) as [Child, Child];
    unwrap(await become(this.stamp, `server-${range.epoch % 3}`, [[range, range.partition]], children));
    this.receivers = [
      await this.load({ rangeId: children[0].rangeId, low: "", high: "d", merged: false }, false, children[0].epoch),
      await this.load({ rangeId: children[1].rangeId, low: "d", high: "~", merged: false }, false, children[1].epoch),
    ];
  }

  override async step(): Promise<void> {
    const dice = this.prng.below(100);
    if (dice < 84) await super.step();
    else if (dice < 90) await this.moveReceiver();
    else if (dice < 93) await this.splitReceiver();
    else if (dice < 96) this.#cutUntilMs = this.#clock.monotonicMs() + this.prng.below(8_000);
    else await this.receivers[0]?.partition.checkpoint();
    this.#startSenders();
    assert.equal(this.#wrong, undefined);
  }

  override async end(): Promise<void> {
    this.#faults = false;
    for (const range of this.ranges) await this.#untilShipped(range);
    for (const late of this.#late) await late;
    for (const sender of this.#senders.values()) sender.stop();
    assert.equal(this.#wrong, undefined);
    for (const { partition, low, high } of this.receivers) {
      const held = await rows(partition.scan({}));
      const own = [...names].filter((name) => name >= low && name < high);
      const expected = own.flatMap((name) => [...(this.model.get(name) ?? [])]).sort();
      assert.deepEqual(held, expected, `seed ${this.seed}: the rows of the receiver at the end, without markers`);
      const used = Math.max(0, ...own.map((name) => this.tickets.get(name) ?? 0));
      const ticket = unwrap(await write(partition, low, []));
      assert.ok(ticket > used, `seed ${this.seed}: the receiver gives ticket ${ticket}, the primary has used ${used}`);
    }
  }
}

interface Child {
  readonly rangeId: string;
  readonly epoch: number;
}
