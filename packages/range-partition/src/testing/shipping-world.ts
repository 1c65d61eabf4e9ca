/**
 * Two sets of ranges over one stream layer: a primary that is written, moved, split and merged, and a receiver that is moved and split.
 * Senders ship over a link that loses requests and answers, is slow, is cut, and delivers again what was delivered long before. After each
 * delivery the rows of the PartitionName are what its first commits made, and never fewer commits than before.
 *
 * With seeding, both sides have rows before the first sender begins, and followers are lost now and then: the range is seeded again. A
 * PartitionName with a seed mark is not judged.
 */
import assert from "node:assert/strict";
import {
  FailureError,
  fromHex,
  fromUtf8,
  type Outcome,
  ok,
  type RuleName,
  refused,
  toHex,
  unknownOutcome,
  unwrap,
  utf8,
} from "@stamp/base";
import { sleep } from "@stamp/ports";
import {
  applySeed,
  applyShipped,
  type RangePartition,
  RangeSeeder,
  RangeSender,
  type SeedPart,
  type Shipment,
  seedMarkKey,
} from "../index.ts";
import { allKeys, FollowedWorld, follower, names, type Range, stateOf } from "./followed-world.ts";
import { put, rows, write } from "./harness.ts";
import { become } from "./reshape-harness.ts";

const nameOf = (key: Uint8Array): Uint8Array => key.subarray(0, 2);
const epoch = 7;
/** Note of a follower whose range is seeded; before that, hexadecimal: every row before this key is seeded. */
const seeded = "seeded";

export class ShippingWorld extends FollowedWorld {
  receivers: Range[] = [];
  readonly #senders = new Map<RangePartition, Shipping>();
  readonly #seeding: boolean;
  readonly #late = new Set<Promise<unknown>>();
  #cutUntilMs = 0;
  #faults = true;
  /** The first delivery that the judge refused: thrown by the next step, not into the sender. */
  #wrong: string | undefined;
  /** For each PartitionName: the receiver has at least so many commits. */
  readonly #seen = new Map<string, number>();
  shipped = 0;
  again = 0;
  /** Parts of scans that were applied, and those of them that were pieces of one PartitionName. */
  parts = 0;
  pieces = 0;

  constructor(seed: number, without: readonly RuleName[] = [], seeding = false) {
    super(seed, without);
    this.#seeding = seeding;
  }

  override async begin(): Promise<void> {
    await super.begin();
    const receiver = await this.load({ rangeId: "s1", low: "", high: "~", merged: false }, true);
    this.receivers = [receiver];
    if (this.#seeding) {
      for (let i = 0; i < 40; i++) await this.write();
      await this.#own(receiver);
      for (const { partition } of this.ranges) unwrap(await partition.followers.begin(follower, allKeys, ""));
    }
    this.#startSenders();
  }

  /** The receiver has rows of its own, as a primary has that was deposed: also of a PartitionName that the primary lacks. */
  async #own({ partition }: Range): Promise<void> {
    for (const name of [...names, "s"]) {
      const count = name === "s" ? 2_500 : 1 + this.prng.below(4);
      const writes = Array.from({ length: count }, (_, i) => put(`${name}/${name === "s" ? i : i + 3}`, "of the receiver"));
      unwrap(await write(partition, name, writes));
    }
  }

  get #clock() {
    return this.stamp.sim.world("link").clock;
  }

  /** Every range of the primary has a sender. Some senders of earlier owners go on until their range is lost. */
  #startSenders(): void {
    for (const partition of [...this.#senders.keys()]) {
      if (this.ranges.some((range) => range.partition === partition)) continue;
      if (!partition.followers.isOver && this.prng.chance(0.5)) continue;
      this.#stop(partition);
    }
    for (const { partition, low, high } of this.ranges) {
      if (this.#senders.has(partition)) continue;
      const stop = new AbortController();
      const shipping: Shipping = { stop, sender: undefined };
      this.#senders.set(partition, shipping);
      void this.#startOne(partition, low, high, shipping).catch((error: unknown) => {
        if (!(error instanceof FailureError)) this.#wrong ??= String(error);
      });
    }
  }

  async #startOne(partition: RangePartition, low: string, high: string, shipping: Shipping): Promise<void> {
    const world = this.stamp.sim.world("sender");
    const { followers } = partition;
    const { signal } = shipping.stop;
    if (this.#seeding && followers.status(follower) === undefined) await followers.begin(follower, allKeys, "");
    const note = followers.status(follower)?.note ?? "";
    if (this.#seeding && note !== seeded) {
      const link = { seed: (part: SeedPart) => this.#onTheWay(() => this.#deliverSeed(part)) };
      const onProgress = (upTo: Uint8Array): void => void followers.begin(follower, allKeys, toHex(upTo));
      const keys = { low: utf8(low), high: utf8(high) };
      const options = { epoch, keys, nameOf, partBytesMax: 250, partRowsMax: 3, onProgress };
      const seeder = new RangeSeeder(world, partition, link, options);
      await seeder.run(fromHex(note) ?? utf8(""), signal);
      if (signal.aborted) return;
      assert.ok(seeder.ended(followers.lastSequence) && seeder.progress(0).acknowledgedBytes >= 0);
      await followers.begin(follower, allKeys, seeded);
    }
    if (signal.aborted || followers.status(follower) === undefined) return;
    const limits = { windowBytesMax: 2_000, batchBytesMax: 400, batchesMax: 4 };
    const link = { ship: (shipment: Shipment) => this.#onTheWay((again) => this.#deliver(shipment, again)) };
    shipping.sender = new RangeSender(world, followers, link, { follower, epoch, nameOf, limits, onEnd: () => {} });
  }

  /** The follower of one range is lost: the range is seeded again. */
  async #loseFollower(): Promise<void> {
    const { partition } = this.prng.pick(this.ranges);
    this.#stop(partition);
    await partition.followers.end(follower);
  }

  #stop(partition: RangePartition): void {
    const shipping = this.#senders.get(partition);
    shipping?.stop.abort();
    shipping?.sender?.stop();
    this.#senders.delete(partition);
  }

  /** A request and its answer, over the link. */
  async #onTheWay(deliver: (again: boolean) => Promise<Outcome<unknown>>): Promise<Outcome<unknown>> {
    const { prng } = this;
    await sleep(this.#clock, prng.below(60));
    const lost = unknownOutcome("unavailable", "connectionLost", "lost");
    if (this.#clock.monotonicMs() < this.#cutUntilMs || (this.#faults && prng.chance(0.1))) return lost;
    if (this.#faults && prng.chance(0.15)) {
      const late = sleep(this.#clock, prng.below(4_000)).then(() => deliver(true));
      this.#late.add(late);
      void late.then(() => this.#late.delete(late));
    }
    const applied = await deliver(false);
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
    await this.#look(partition, name);
    return applied;
  }

  async #look(partition: RangePartition, name: string): Promise<void> {
    try {
      const held = await rows(partition.scan({ gte: utf8(`${name}/`), lt: utf8(`${name}0`) }));
      if ((await partition.get(seedMarkKey(utf8(`${name}/`)))) === undefined) this.#judge(name, stateOf(new Map(held)));
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
    }
  }

  /** The part goes to every range of the receiver that has keys of it. */
  async #deliverSeed(part: SeedPart): Promise<Outcome<unknown>> {
    const [low, high] = [fromUtf8(part.low), fromUtf8(part.high)];
    const world = this.stamp.sim.world("door");
    for (const range of this.receivers) {
      if (range.low >= high || (range.high <= low && range.low !== low)) continue;
      const own = {
        ...part,
        low: range.low > low ? utf8(range.low) : part.low,
        high: range.high < high ? utf8(range.high) : part.high,
        rows: part.rows.filter(([key]) => fromUtf8(key) >= range.low && fromUtf8(key) < range.high),
      };
      const applied = await applySeed(world, range.partition, own, { nameOf, timeoutMs: 5_000 });
      if (!applied.ok) return applied;
      this.parts++;
      if (part.piece !== undefined) this.pieces++;
      const touched = [...names].filter((name) => `${name}/` >= fromUtf8(own.low) && `${name}/` < fromUtf8(own.high));
      if (part.piece?.isLast) touched.push(fromUtf8(part.piece.name).slice(0, 1));
      for (const name of touched) if (this.receivers.includes(range)) await this.#look(range.partition, name);
    }
    return ok();
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
    const isBehind = (): boolean => {
      const status = partition.followers.status(follower);
      return (this.#seeding && status?.note !== seeded) || (status?.pending ?? 0) > 0;
    };
    while (isBehind()) {
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
    unwrap(await range.partition.departure.prepare(true));
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
    else if (dice < 98 || !this.#seeding) await this.receivers[0]?.partition.checkpoint();
    else await this.#loseFollower();
    this.#startSenders();
    assert.equal(this.#wrong, undefined);
  }

  override async end(): Promise<void> {
    this.#faults = false;
    for (const range of this.ranges) await this.#untilShipped(range);
    for (const late of this.#late) await late;
    for (const partition of [...this.#senders.keys()]) this.#stop(partition);
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

interface Shipping {
  readonly stop: AbortController;
  /** Undefined while the range is seeded. */
  sender: RangeSender | undefined;
}

interface Child {
  readonly rangeId: string;
  readonly epoch: number;
}
