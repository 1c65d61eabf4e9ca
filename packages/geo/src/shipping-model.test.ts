/**
 * The machines of shipping in the world of docs/design/model/geo-shipping.pml: the commits of one PartitionName, each a
 * put or a deletion of one of two keys, on their way to the other stamp. The range changes its owner; connections
 * break, and one that was given up still delivers; acknowledgements are lost; the receiver crashes. Random runs; at
 * each step the receiver shows what the first m commits made, for some m that is at least what Last Sync Time says.
 * Without each rule a run shows a state that never was.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleName, Rules } from "@stamp/base";
import { allRules, Prng, rulesWithout } from "@stamp/base";
import { Acknowledgements } from "./acknowledgements.ts";
import { RangeCursor } from "./range-cursor.ts";
import { appliesRow, forgottenAt, nextFloor, type RowVersion, tombstoneOf } from "./row-versions.ts";
import { RangeSeeding } from "./seeding.ts";

const keys = ["0", "1"] as const;
type Key = (typeof keys)[number];
interface Row {
  readonly version: RowVersion;
  readonly deleted: boolean;
}
interface Receiver {
  readonly rows: Map<Key, Row>;
  readonly floor: RowVersion | undefined;
}
interface Connection {
  readonly owner: number;
  readonly acks: Acknowledgements;
  delivered: number;
  /** Parts of the scan that are on their way. */
  readonly scan: { readonly key: Key; readonly version: RowVersion | undefined }[];
  /** Last key of the scan that was applied, and that was applied when the last sync began. */
  scanApplied: string;
  scanSynced: string;
}

const version = (number: number): RowVersion => ({ epoch: 1, number });

class World {
  readonly random: Prng;
  readonly rules: Rules;
  readonly commitsMax: number;
  readonly log: { readonly key: Key; readonly deleted: boolean }[] = [];
  trimmed = 0;
  durable = 0;
  owner = 0;
  readonly cursors: RangeCursor[] = [];
  readonly ends: number[] = [];
  connections: Connection[] = [];
  memory: Receiver = { rows: new Map(), floor: undefined };
  synced: Receiver = { rows: new Map(), floor: undefined };
  /** Last Sync Time, as the number of a commit. */
  told = 0;
  seeding: RangeSeeding | undefined;
  scanned = "";
  readonly acts: readonly (readonly [number, () => void])[];

  constructor(seed: number, rules: Rules, seeded: boolean) {
    this.random = new Prng(seed);
    this.rules = rules;
    const before = seeded ? 1 + this.random.below(3) : 0;
    this.commitsMax = before + 1 + this.random.below(5);
    for (let n = 0; n < before; n++) this.append();
    this.durable = this.trimmed = before;
    this.takeOver();
    if (seeded) this.seeding = new RangeSeeding(rules);
    this.acts = this.weighted();
  }

  get cursor(): RangeCursor {
    return this.cursors[this.owner] as RangeCursor;
  }

  append(): void {
    this.log.push({ key: this.random.pick(keys), deleted: this.random.chance(0.5) });
  }

  takeOver(): void {
    this.cursors[this.owner] = new RangeCursor({ durable: this.durable, trimmed: this.trimmed, end: this.log.length }, this.rules);
    this.ends[this.owner] = this.log.length;
  }

  step(): void {
    let at = this.random.below(this.acts.reduce((sum, [weight]) => sum + weight, 0));
    for (const [weight, act] of this.acts) {
      at -= weight;
      if (at >= 0) continue;
      act();
      return;
    }
  }

  /** Each run does some things often and others seldom. */
  weighted(): (readonly [number, () => void])[] {
    const often = (): number => 1 + this.random.below(4) ** 3;
    const acts: readonly (() => void)[] = [
      () => this.commit(),
      () => this.move(),
      () => this.trim(),
      () => this.connect(),
      () => this.cursor.sent(this.log.length),
      () => this.deliver(),
      () => this.acknowledge(),
      () => this.breakOne(),
      () => this.forget(),
      () => this.sync(),
      () => this.crash(),
      () => this.record(),
      () => this.tell(),
      () => this.scan(),
      () => this.deliverScan(),
      () => this.endSeeding(),
    ];
    return acts.map((act) => [often(), act]);
  }

  commit(): void {
    if (this.log.length >= this.commitsMax) return;
    this.append();
    this.ends[this.owner] = this.log.length;
    this.cursor.committed(this.log.length);
  }

  /** The range goes to another server, or to the child of a split or merge. */
  move(): void {
    if (this.owner > 0 || this.random.chance(0.7)) return;
    this.owner = 1;
    this.takeOver();
    if (this.seeding !== undefined) {
      this.seeding = new RangeSeeding(this.rules);
      this.scanned = "";
    }
  }

  trim(): void {
    this.trimmed = Math.max(this.trimmed, this.cursor.trimUpTo);
  }

  connect(): void {
    if (this.connections.length >= 3) return;
    const owner = this.random.below(this.owner + 1);
    const from = (this.cursors[owner] as RangeCursor).from;
    assert.ok(owner !== this.owner || from >= this.trimmed, "a connection begins in the log that was trimmed");
    this.connections.push({
      owner,
      acks: new Acknowledgements(from, this.rules),
      delivered: from,
      scan: [],
      scanApplied: "",
      scanSynced: "",
    });
    if (owner === this.owner) this.scanBroken();
  }

  /** The scan goes on over the newest connection. */
  scanBroken(): void {
    if (this.seeding === undefined) return;
    this.seeding.broken();
    this.scanned = this.seeding.acknowledgedKey;
  }

  deliver(): void {
    if (this.connections.length === 0) return;
    const connection = this.random.pick(this.connections);
    if (connection.delivered >= (this.ends[connection.owner] as number)) return;
    const position = connection.delivered + 1;
    (this.cursors[connection.owner] as RangeCursor).sent(position);
    const { key, deleted } = this.log[position - 1] as { key: Key; deleted: boolean };
    this.apply(key, version(position), deleted);
    connection.delivered = position;
    connection.acks.applied(position);
  }

  apply(key: Key, shipped: RowVersion, deleted: boolean): void {
    const { rows, floor } = this.memory;
    if (!appliesRow(shipped, { held: rows.get(key)?.version, floor }, this.rules)) return;
    const stays = deleted ? tombstoneOf(shipped, this.rules) : shipped;
    if (stays === undefined) rows.delete(key);
    else rows.set(key, { version: stays, deleted });
  }

  acknowledge(): void {
    if (this.connections.length === 0) return;
    const { owner, acks, scanSynced, scanApplied } = this.random.pick(this.connections);
    (this.cursors[owner] as RangeCursor).acknowledged(acks.acknowledgeable);
    if (owner !== this.owner || this.seeding === undefined) return;
    this.seeding.applied(scanApplied);
    this.seeding.acknowledged(scanSynced);
  }

  breakOne(): void {
    const broken = this.connections.splice(this.random.below(this.connections.length + 1), 1)[0];
    if (broken?.owner === this.owner) this.scanBroken();
  }

  forget(): void {
    const floor = nextFloor(version(this.cursor.from), this.memory.floor, this.seeding !== undefined, this.rules);
    if (floor === undefined || this.cursor.from === 0) return;
    const rows = new Map([...this.memory.rows].filter(([, row]) => !row.deleted || !forgottenAt(row.version, floor)));
    this.memory = { rows, floor };
  }

  sync(): void {
    this.synced = { rows: new Map(this.memory.rows), floor: this.memory.floor };
    for (const connection of this.connections) {
      connection.acks.synced(connection.acks.syncing);
      connection.scanSynced = connection.scanApplied;
    }
  }

  /** The receiver crashes: connections end. */
  crash(): void {
    if (this.random.chance(0.5)) return;
    this.memory = { rows: new Map(this.synced.rows), floor: this.synced.floor };
    this.connections = [];
    this.scanBroken();
  }

  record(): void {
    const position = this.cursor.toRecord;
    if (position === undefined) return;
    this.durable = position;
    this.cursor.recorded(position);
  }

  tell(): void {
    if (this.seeding === undefined) this.told = Math.max(this.told, this.cursor.from);
  }

  /** The owner sends the next key of the scan as it is now. */
  scan(): void {
    const connection = this.connections.findLast(({ owner }) => owner === this.owner);
    const key = keys.find((each) => each > this.scanned);
    if (this.seeding === undefined || connection === undefined || key === undefined) return;
    const last = this.log.findLastIndex((commit) => commit.key === key);
    connection.scan.push({ key, version: last < 0 || this.log[last]?.deleted ? undefined : version(last + 1) });
    this.seeding.sent(key, 1);
    this.scanned = key;
    if (key === keys.at(-1)) this.seeding.scanned(this.log.length);
  }

  deliverScan(): void {
    if (this.connections.length === 0) return;
    const connection = this.random.pick(this.connections);
    const part = connection.scan.shift();
    if (part === undefined) return;
    if (part.version !== undefined) this.apply(part.key, part.version, false);
    connection.scanApplied = part.key;
  }

  endSeeding(): void {
    if (this.seeding?.ended(this.cursor.from) === true) this.seeding = undefined;
  }

  /** Undefined: the receiver shows what the first m commits made, and m is at least the number of commits that the sender says it has shipped. */
  wrong(): string | undefined {
    if (this.seeding !== undefined) return undefined;
    for (let m = this.told; m <= this.log.length; m++) if (this.shows(m)) return undefined;
    return `the receiver shows no state after commit ${this.told} or a later one`;
  }

  shows(m: number): boolean {
    return keys.every((key) => {
      const last = this.log.slice(0, m).findLastIndex((commit) => commit.key === key);
      const row = this.memory.rows.get(key);
      if (last < 0 || this.log[last]?.deleted === true) return row === undefined || row.deleted;
      return row !== undefined && !row.deleted && row.version.number === last + 1;
    });
  }

  /** Everything is connected and nothing is lost any more: the receiver has everything. */
  settle(): void {
    this.connections = [];
    this.scanBroken();
    for (let round = 0; round < 40; round++) {
      const at = this.connections.length;
      if (at === 0) this.connect();
      this.deliver();
      this.scan();
      this.deliverScan();
      this.sync();
      this.acknowledge();
      this.endSeeding();
      if (this.connections.some(({ owner }) => owner !== this.owner)) this.connections = [];
    }
    this.tell();
    assert.equal(this.told, this.log.length, "the receiver does not get everything");
    assert.equal(this.wrong(), undefined);
  }
}

function run(seed: number, rules: Rules, seeded: boolean): string | undefined {
  const world = new World(seed, rules, seeded);
  for (let step = 0; step < 150; step++) {
    world.step();
    const wrong = world.wrong();
    if (wrong !== undefined) return wrong;
  }
  if (rules === allRules) world.settle();
  return undefined;
}

const seeds = 1_500;
const mutantSeeds = 10_000;

for (const seeded of [false, true]) {
  test(`shipping: the receiver shows a prefix of the commits${seeded ? " after seeding" : ""}, and Last Sync Time does not overstate`, () => {
    for (let seed = 1; seed <= seeds; seed++) assert.equal(run(seed, allRules, seeded), undefined, `seed ${seed}`);
  });
}

const mutants: readonly (readonly [RuleName, boolean])[] = [
  ["geoRowVersionsRise", false],
  ["geoAcknowledgedIsSynced", false],
  ["geoCursorAcknowledged", false],
  ["geoHeirContinues", false],
  ["geoFloorRefuses", false],
  ["geoDeletionsLeaveTombstones", false],
  ["geoTombstonesKeptInSeeding", true],
  ["geoScanIsSynced", true],
  ["geoSeedingEndsAtScanEnd", true],
];
for (const [rule, seeded] of mutants) {
  test(`shipping: without ${rule} the receiver shows what never was`, () => {
    let found: string | undefined;
    for (let seed = 1; seed <= mutantSeeds && found === undefined; seed++) found = run(seed, rulesWithout(rule), seeded);
    assert.match(found ?? `no seed of ${mutantSeeds} noticed`, /shows no state/);
  });
}
