/**
 * A range that is written, moved, split and merged while a follower copies its commits, for the tests of followers. The copy keeps a
 * version for each PartitionName (here the key's first letter), as the receiver of another stamp does.
 */
import assert from "node:assert/strict";
import { fromUtf8, type RuleName, unwrap, utf8 } from "@stamp/base";
import type { LoggedCommit, RangePartition, RowWrite } from "../index.ts";
import { put, rows, Stamp, write } from "./harness.ts";
import { become } from "./reshape-harness.ts";

export const names = "abcdefgh";
export const follower = "f";
export const allKeys = { low: utf8(""), high: utf8("~") };

export interface Range {
  readonly rangeId: string;
  readonly epoch: number;
  readonly low: string;
  readonly high: string;
  /** True if a merge was among its parents: a follower may have been left behind. */
  readonly merged: boolean;
  readonly partition: RangePartition;
}

export type Bounds = Pick<Range, "rangeId" | "low" | "high" | "merged">;

/** Copy of one PartitionName. */
interface Copied {
  version: number;
  rows: Map<string, string>;
}

export const stateOf = (held: ReadonlyMap<string, string>): string => JSON.stringify([...held].sort());

export class FollowedWorld {
  readonly stamp: Stamp;
  protected readonly seed: number;
  ranges: Range[] = [];
  protected epoch = 0;
  #count = 0;
  /** Rows of each PartitionName, as they were after each of its commits. */
  protected readonly model = new Map<string, Map<string, string>>();
  protected readonly history = new Map<string, string[]>();
  readonly #copy = new Map<string, Copied>();
  /** Followers that had to begin anew, each after a merge that left commits behind. */
  begunAnew = 0;
  /** Highest ticket that was used for each PartitionName. */
  protected readonly tickets = new Map<string, number>();
  merges = 0;

  constructor(seed: number, without: readonly RuleName[] = []) {
    this.seed = seed;
    this.stamp = new Stamp(seed, {
      without,
      extentTargetBytes: 4_000,
      limits: { memoryTableBytesMax: 6_000, logBytesMax: 30_000, checkpointsMax: 3, followedBytesMax: 600 },
    });
  }

  protected get prng() {
    return this.stamp.sim.prng;
  }

  async begin(): Promise<void> {
    this.ranges = [await this.load({ rangeId: "r1", low: "", high: "~", merged: false }, true)];
    await this.#scan(this.ranges[0] as Range);
  }

  protected async load(bounds: Bounds, create = false, epoch = ++this.epoch): Promise<Range> {
    const { rangeId, low, high, merged } = bounds;
    const partition = unwrap(await this.stamp.load(epoch, `server-${epoch % 3}`, { rangeId, low, high, create }));
    return { rangeId, epoch, low, high, merged, partition };
  }

  #pick(): Range {
    return this.prng.pick(this.ranges);
  }

  protected of(name: string): Range {
    return this.ranges.find(({ low, high }) => name >= low && name < high) as Range;
  }

  /** Commits a transaction of one PartitionName. */
  async write(): Promise<void> {
    const name = this.prng.pick([...names]);
    const model = this.model.get(name) ?? new Map<string, string>();
    this.model.set(name, model);
    const writes: RowWrite[] = [];
    for (let i = 0; i <= this.prng.below(3); i++) {
      const key = `${name}/${this.prng.below(5)}`;
      const value = this.prng.chance(0.3) ? undefined : `${++this.#count} ${"x".repeat(this.prng.below(150))}`;
      writes.push(value === undefined ? { kind: "delete", key: utf8(key) } : put(key, value));
      if (value === undefined) model.delete(key);
      else model.set(key, value);
    }
    const ticket = unwrap(await write(this.of(name).partition, name, writes));
    this.tickets.set(name, ticket);
    const history = this.history.get(name) ?? [stateOf(new Map())];
    this.history.set(name, [...history, stateOf(model)]);
  }

  /** The follower of one range copies commits, some or all, acknowledges them or not, and makes its cursor durable or not. */
  async follow(range = this.#pick(), all = false): Promise<void> {
    const { followers } = range.partition;
    const status = followers.status(follower);
    if (status === undefined) {
      assert.ok(range.merged, `seed ${this.seed}: ${range.rangeId} lost its follower without a merge`);
      this.begunAnew++;
      return this.#scan(range);
    }
    let left = all ? Number.POSITIVE_INFINITY : this.prng.below(12);
    for await (const commit of followers.commitsFor(follower, status.acknowledged)) {
      if (left-- <= 0) break;
      followers.sent(follower, commit.sequence);
      // The connection breaks: the commit is lost on its way.
      if (!all && this.prng.chance(0.1)) break;
      this.#apply(commit, range);
      if (all || this.prng.chance(0.5)) assert.ok(followers.acknowledged(follower, commit.sequence));
    }
    if (all || this.prng.chance(0.4)) unwrap(await followers.record());
  }

  #apply({ sequence, writes }: LoggedCommit, { low, high }: Range): void {
    const touched = new Map<string, RowWrite[]>();
    for (const each of writes) {
      const name = fromUtf8(each.key).slice(0, 1);
      assert.ok(name >= low && name < high, `seed ${this.seed}: ${name} is not in the range`);
      touched.set(name, [...(touched.get(name) ?? []), each]);
    }
    for (const [name, own] of touched) {
      const copied = this.#copy.get(name) ?? { version: 0, rows: new Map<string, string>() };
      this.#copy.set(name, copied);
      if (sequence <= copied.version) continue;
      copied.version = sequence;
      for (const each of own) {
        if (each.kind === "put") copied.rows.set(fromUtf8(each.key), fromUtf8(each.value));
        else copied.rows.delete(fromUtf8(each.key));
      }
      const known = this.history.get(name) ?? [];
      assert.ok(known.includes(stateOf(copied.rows)), `seed ${this.seed}: ${name} at commit ${sequence} is as it never was`);
    }
  }

  /** The follower begins anew: from here on in the log, and with all rows as they are now. */
  async #scan({ partition, low, high }: Range): Promise<void> {
    unwrap(await partition.followers.begin(follower, allKeys, "note"));
    const { lastSequence } = partition.followers;
    for (const name of names) {
      if (name < low || name >= high) continue;
      const found = await rows(partition.scan({ gte: utf8(`${name}/`), lt: utf8(`${name}0`) }));
      this.#copy.set(name, { version: lastSequence, rows: new Map(found) });
    }
  }

  async checkpoint(): Promise<void> {
    unwrap(await this.#pick().partition.checkpoint());
  }

  async move(): Promise<void> {
    const range = this.#pick();
    if (this.prng.chance(0.5)) await range.partition.close();
    this.ranges[this.ranges.indexOf(range)] = await this.load(range);
  }

  async split(): Promise<void> {
    const range = this.#pick();
    const inside = [...names].filter((name) => name > range.low && name < range.high);
    if (inside.length === 0) return;
    const at = this.prng.pick(inside);
    const children = [this.#newRange(), this.#newRange()] as const;
    unwrap(await range.partition.departure.prepare(true));
    const parents: Parameters<typeof become>[2] = [[range, range.partition]];
    unwrap(await become(this.stamp, `server-${range.epoch % 3}`, parents, children));
    const { low, high, merged } = range;
    const lower = { ...children[0], low, high: at, merged };
    const upper = { ...children[1], low: at, high, merged };
    const loaded = [await this.load(lower, false, lower.epoch), await this.load(upper, false, upper.epoch)];
    this.ranges.splice(this.ranges.indexOf(range), 1, ...loaded);
  }

  #newRange(): { readonly rangeId: string; readonly epoch: number } {
    const epoch = ++this.epoch;
    return { rangeId: `r-e${epoch}`, epoch };
  }

  async merge(): Promise<void> {
    if (this.ranges.length < 2) return;
    const at = this.prng.below(this.ranges.length - 1);
    const [first, second] = this.ranges.slice(at, at + 2) as [Range, Range];
    if (this.prng.chance(0.5)) for (const range of [first, second]) await this.follow(range, true);
    const child = this.#newRange();
    const parents: Parameters<typeof become>[2] = [first, second].map((range) => [range, range.partition]);
    if (this.prng.chance(0.3)) for (const { partition } of [first, second]) unwrap(await partition.departure.prepare(true));
    const lagging = [first, second].some(({ partition }) => (partition.followers.status(follower)?.pending ?? 1) > 0);
    unwrap(await become(this.stamp, `server-${first.epoch % 3}`, parents, [child]));
    const merged = await this.load({ rangeId: child.rangeId, low: first.low, high: second.high, merged: true }, false, child.epoch);
    this.ranges.splice(at, 2, merged);
    this.merges++;
    if (merged.partition.followers.status(follower) !== undefined) return;
    assert.ok(lagging, `seed ${this.seed}: a merge lost a follower that had everything`);
  }

  async step(): Promise<void> {
    const dice = this.prng.below(100);
    if (dice < 55) await this.write();
    else if (dice < 80) await this.follow();
    else if (dice < 86) await this.checkpoint();
    else if (dice < 92) await this.move();
    else if (dice < 96) await this.split();
    else await this.merge();
  }

  /** Everything is copied, and the copy is what there is. */
  async end(): Promise<void> {
    for (const range of this.ranges) await this.follow(range, true);
    for (const name of names) {
      const [copied, model] = [this.#copy.get(name)?.rows, this.model.get(name)].map((held) => stateOf(held ?? new Map()));
      assert.equal(copied, model, `seed ${this.seed}: ${name} at the end`);
    }
  }
}
