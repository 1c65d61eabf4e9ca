/**
 * The machines of roles and operations in the world of docs/design/model/geo-failover.pml: one account on two stamps,
 * or, beyond the model, on three, between which it migrates and where copies are made and removed;
 * commands and answers that come late, more than once or never, crashes of the location service, shipments that are
 * late. Random runs; properties P1 to P6 of the model are asked at each step. Without each rule a run shows a loss, a
 * divergence or a wrong report.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuleName, Rules } from "@stamp/base";
import { allRules, ok, Prng, rulesWithout, unwrap } from "@stamp/base";
import type { AccountRole, GeoPoint, RoleCommand } from "./account-role.ts";
import { acceptsShipment, answersFromMs, planObey, reportComplete, seedingEnded, ships, takesWrites } from "./account-role.ts";
import { owedTo, planLost, planTold } from "./lost-stamps.ts";
import type { GeoAccount, StepAnswer } from "./operations.ts";
import {
  commandOf,
  commandToSend,
  planAnswer,
  planDrainLate,
  planFailover,
  planForcedFailover,
  planGiveUp,
  planMigrate,
  planProtect,
  planSeeded,
  planUnprotect,
} from "./operations.ts";

const cacheTermMs = 10;
const operationsMax = 6;
const stamps = ["a", "b", "c"] as const;
type Name = (typeof stamps)[number];
const pointOf = (length: number): GeoPoint => [{ range: "r", sequence: length }];
const lengthOf = (point: GeoPoint): number => point[0]?.sequence ?? 0;

interface Stamp {
  /** Undefined: it has never heard of the account. */
  row: AccountRole | undefined;
  rowWrittenMs: number;
  /** A front-end acts on a row that it read at most a term ago. */
  cached: { readonly row: AccountRole | undefined; readonly readMs: number };
  log: number[];
  /** Length that the secondary acknowledged to this stamp. */
  cursor: number;
  answeredDemote: boolean;
}

interface Late {
  readonly to: Name;
  readonly epoch: number;
  readonly at: number;
  readonly write: number;
}

class World {
  readonly random: Prng;
  /** Stamps that take part. Only with a third one are copies made and removed. */
  readonly names: readonly Name[];
  readonly rules: Rules;
  nowMs = 0;
  readonly stamps: Record<Name, Stamp>;
  recorded: GeoAccount;
  planned: GeoAccount;
  sent: { readonly to: Name; readonly command: RoleCommand; readonly step: StepAnswer["step"] }[] = [];
  answers: StepAnswer[] = [];
  late: Late | undefined;
  written = 0;
  readonly acknowledged = new Set<number>();
  readonly aside = new Set<number>();
  forced = false;
  /** Stamp that was declared lost. What was acknowledged may be lost with it. */
  lost: Name | undefined;
  readonly loses: boolean;
  /** Few writes leave more room for late shipments that fit. */
  readonly writesMax: number;

  constructor(seed: number, rules: Rules, names: readonly Name[], loses = false) {
    this.loses = loses;
    this.random = new Prng(seed);
    this.names = names;
    this.writesMax = 1 + this.random.below(6);
    this.rules = rules;
    const obeyed = { operation: 1, phase: 0 };
    const stamp = (row?: AccountRole): Stamp => ({
      row,
      rowWrittenMs: 0,
      cached: { row, readMs: 0 },
      log: [],
      cursor: 0,
      answeredDemote: false,
    });
    this.stamps = {
      a: stamp({ role: "primary", epoch: 1, obeyed, peer: "b" }),
      b: stamp({ role: "secondary", epoch: 1, obeyed, peer: "a" }),
      c: stamp(),
    };
    this.recorded = { name: "acme", primary: "a", secondary: "b", epoch: 1, operation: 1, seeded: true };
    this.planned = this.recorded;
  }

  step(): void {
    this.nowMs += this.random.below(3);
    const name = this.random.pick(this.names);
    const acts = [
      () => this.write(name),
      () => this.write(name),
      () => this.refresh(name),
      () => this.ship(name),
      () => this.ship(name),
      () => this.acknowledge(name),
      () => (this.random.chance(0.05) ? this.deliverLate() : undefined),
      () => this.seed(name),
      () => this.seed(name),
      () => this.deliver(),
      () => this.deliver(),
      () => this.deliver(),
      () => this.plan(),
      () => this.plan(),
      () => this.record(),
      () => this.record(),
      () => this.send(),
      () => this.send(),
      ...(this.loses ? [() => this.declareLost(), () => (this.random.chance(0.3) ? this.tellOwed() : undefined)] : []),
    ];
    this.random.pick(acts)();
  }

  /** The newest one more often than the others. */
  oneOf<T>(items: readonly T[]): T {
    return this.random.chance(0.6) ? (items.at(-1) as T) : this.random.pick(items);
  }

  refresh(name: Name): void {
    this.stamps[name].cached = { row: this.stamps[name].row, readMs: this.nowMs };
  }

  write(name: Name): void {
    const stamp = this.stamps[name];
    if (this.written >= this.writesMax) return;
    if (this.nowMs - stamp.cached.readMs >= cacheTermMs) this.refresh(name);
    if (stamp.cached.row === undefined || !takesWrites(stamp.cached.row)) return;
    assert.ok(!stamp.answeredDemote, "P2: a stamp acknowledged a write after it answered demote");
    stamp.log.push(this.written);
    this.acknowledged.add(this.written);
    this.written += 1;
  }

  /** The primary and its peer, if the peer follows it now; undefined otherwise. */
  pairOf(name: Name): { readonly source: Stamp; readonly target: Stamp; readonly to: Name } | undefined {
    const source = this.stamps[name];
    const to = source.row?.peer as Name | undefined;
    if (source.row === undefined || to === undefined || !ships(source.row)) return undefined;
    const target = this.stamps[to];
    return target.row?.role === "secondary" && target.row.epoch === source.row.epoch ? { source, target, to } : undefined;
  }

  ship(name: Name): void {
    const pair = this.pairOf(name);
    if (pair === undefined) return;
    const { source, target, to } = pair;
    const write = source.log[target.log.length];
    if (write === undefined) return;
    const shipment: Late = { to, epoch: source.row?.epoch ?? 0, at: target.log.length, write };
    if (this.late === undefined && this.random.chance(0.3)) this.late = shipment;
    else this.apply(shipment);
  }

  deliverLate(): void {
    const { late } = this;
    this.late = undefined;
    if (late !== undefined && !this.random.chance(0.1)) this.apply(late);
  }

  /** Rows apply in order: the shipment of a position fits only behind the one in front of it. */
  apply({ to, epoch, at, write }: Late): void {
    const stamp = this.stamps[to];
    if (stamp.row?.role !== "secondary" || stamp.log.length !== at || !acceptsShipment(stamp.row, epoch, this.rules).ok) return;
    stamp.log.push(write);
    const primary = this.stamps[stamp.row.peer as Name];
    if (primary.row?.epoch !== stamp.row.epoch || !ships(primary.row)) return;
    assert.equal(primary.log[at], write, "P6: the secondary is no prefix of its primary");
  }

  acknowledge(name: Name): void {
    const pair = this.pairOf(name);
    if (pair !== undefined) pair.source.cursor = pair.target.log.length;
  }

  /** In one step: what comes beside it is in shipping-model.test.ts. */
  seed(name: Name): void {
    const stamp = this.stamps[name];
    const primary = this.stamps[(stamp.row?.peer ?? name) as Name];
    if (stamp.row?.role !== "unseeded" || primary.row?.role !== "primary" || primary.row.peer !== name) return;
    if (!acceptsShipment(stamp.row, primary.row.epoch, this.rules).ok || this.cachedWrites(name)) return;
    stamp.log = [...primary.log];
    primary.cursor = stamp.log.length;
    this.writeRow(name, seedingEnded(stamp.row, primary.row, this.rules));
    if (this.names.length === 2 || this.random.chance(0.5)) this.tellSeeded(name);
    this.nothingLost();
  }

  /** The primary says that its peer's copy is complete, at once or later. */
  tellSeeded(name: Name): void {
    const { row } = this.stamps[name];
    if (row?.role !== "secondary") return;
    this.recorded = planSeeded(this.recorded, row.epoch, name);
    this.planned = this.recorded;
  }

  nothingLost(): void {
    if (this.lost !== undefined) return;
    const kept = new Set([...stamps.flatMap((name) => this.stamps[name].log), ...this.aside]);
    for (const write of this.acknowledged) assert.ok(kept.has(write), `P3: acknowledged write ${write} is nowhere`);
  }

  /** A front-end that still acts on a row of before. */
  cachedWrites(name: Name): boolean {
    const { cached, row } = this.stamps[name];
    if (cached.row === undefined || row === undefined) return false;
    return takesWrites(cached.row) && !takesWrites(row) && this.nowMs - cached.readMs < cacheTermMs;
  }

  writeRow(name: Name, row: AccountRole): void {
    this.stamps[name].row = row;
    this.stamps[name].rowWrittenMs = this.nowMs;
  }

  /** A command that was sent arrives now; it may arrive again. */
  deliver(): void {
    if (this.sent.length === 0) return;
    const { to, command, step } = this.oneOf(this.sent);
    const stamp = this.stamps[to];
    const before = stamp.row;
    const told = planObey(before, command, { copied: pointOf(stamp.log.length), acknowledged: pointOf(stamp.cursor) }, this.rules);
    if (!told.ok) return;
    if (told.value.changed) this.writeRow(to, told.value.row);
    if (told.value.changed && (command.kind === "remove" || command.kind === "follow")) {
      stamp.log = [];
      stamp.cursor = 0;
      this.nothingLost();
    }
    if (command.kind === "promote" && told.value.changed) this.promoted(to);
    const quiet = this.nowMs >= answersFromMs(stamp.rowWrittenMs, cacheTermMs, this.rules);
    const answer = { operation: command.operation, step };
    if (command.kind === "promote") this.answers.push({ ...answer, point: told.value.row.promotedAt ?? [] });
    else if (command.kind === "drain") this.answerDrain(to, quiet, answer);
    else if (command.kind === "demote") this.answerDemote(to, quiet, answer);
    else this.answers.push(answer);
  }

  promoted(to: Name): void {
    if (this.lost === undefined) this.hasEverything(to);
    this.begins(to);
  }

  hasEverything(to: Name): void {
    const has = new Set(this.stamps[to].log);
    const { running } = this.recorded;
    if (running !== undefined && running.kind !== "forced" && running.target === to) {
      const source = this.stamps[running.source as Name];
      for (const write of source.log) assert.ok(has.has(write), `P1: a planned promotion without write ${write} of the old primary`);
    }
    if (!this.forced) for (const write of this.acknowledged) assert.ok(has.has(write), `P1: a planned promotion without write ${write}`);
  }

  begins(to: Name): void {
    this.stamps[to].cursor = 0;
    this.stamps[to].answeredDemote = false;
  }

  declareLost(): void {
    const name = this.random.pick(this.names);
    if (this.loses && this.lost === undefined && this.random.chance(0.1) && planLost(this.recorded, name).ok) this.lost = name;
  }

  withoutLost(account: GeoAccount): GeoAccount {
    const left = this.lost === undefined ? ok(account) : planLost(account, this.lost);
    return left.ok ? left.value : account;
  }

  /** The lost stamp is there, and is told what it is owed. */
  tellOwed(): void {
    const [owed] = this.lost === undefined ? [] : owedTo(this.recorded, this.lost);
    if (owed === undefined) return;
    const to = owed.stamp as Name;
    const told = planObey(this.stamps[to].row, owed.command, { copied: [], acknowledged: [] }, this.rules);
    if (!told.ok) return;
    if (told.value.changed) this.writeRow(to, told.value.row);
    if (this.nowMs < answersFromMs(this.stamps[to].rowWrittenMs, cacheTermMs, this.rules)) return;
    if (owed.command.kind === "remove") this.stamps[to].answeredDemote = true;
    this.recorded = planTold(this.recorded, owed);
    this.planned = this.recorded;
  }

  answerDrain(to: Name, quiet: boolean, answer: StepAnswer): void {
    const stamp = this.stamps[to];
    if (quiet) this.answers.push({ ...answer, pendingCommits: stamp.log.length - stamp.cursor });
  }

  answerDemote(to: Name, quiet: boolean, answer: StepAnswer): void {
    const stamp = this.stamps[to];
    if (!quiet || stamp.row === undefined) return;
    const { report, peer } = stamp.row;
    if (report !== undefined && !report.complete) {
      for (const write of stamp.log.slice(lengthOf(report.from))) {
        assert.ok(!this.stamps[peer as Name].log.includes(write), "P4: the report has what the new primary has");
        this.aside.add(write);
      }
      stamp.row = reportComplete(stamp.row);
    }
    if (stamp.row.role === "unseeded") stamp.answeredDemote = true;
    this.answers.push(answer);
  }

  plan(): void {
    const account = this.recorded;
    const answer = this.answers.length === 0 ? undefined : this.oneOf(this.answers);
    const { kind, step } = account.running ?? {};
    const late = kind === "migrate" && step === "draining" && account.operation < operationsMax && this.random.chance(0.3);
    const choices = [
      () => (answer === undefined ? undefined : planAnswer(account, answer)),
      () => (answer === undefined ? undefined : planAnswer(account, answer)),
      () => (account.operation < operationsMax ? planFailover(account) : undefined),
      () =>
        account.operation < operationsMax && !this.forced && this.random.chance(0.5) ? planForcedFailover(account, undefined) : undefined,
      () => planGiveUp(account),
      ...(this.names.length > 2 && account.operation < operationsMax ? this.movesOf(account) : []),
    ];
    const planned = late ? planDrainLate(account) : this.random.pick(choices)();
    if (planned?.ok) this.planned = planned.value;
    this.planned = this.withoutLost(this.planned);
  }

  movesOf(account: GeoAccount): (() => ReturnType<typeof planUnprotect> | undefined)[] {
    const name = this.random.pick(this.names);
    if (name === this.lost) return [];
    return [
      () => (this.random.chance(0.5) ? planUnprotect(account) : undefined),
      () => (account.secondary === undefined ? planProtect(account, name) : undefined),
      () => planMigrate(account, name),
      () => planMigrate(account, name),
      () => {
        this.tellSeeded(this.random.chance(0.5) ? name : ((account.running?.target as Name | undefined) ?? name));
        return undefined;
      },
    ];
  }

  /** The transaction commits, or the location service crashes before it. */
  record(): void {
    if (this.random.chance(0.3)) {
      this.planned = this.recorded;
      return;
    }
    if (this.planned.running?.kind === "forced") this.forced = true;
    this.recorded = this.planned;
  }

  send(): void {
    const told = commandToSend(this.recorded, this.planned, this.rules);
    const from = this.rules.on("geoStepRecorded") ? this.recorded : this.planned;
    if (told !== undefined && from.running !== undefined) {
      this.sent.push({ to: told.stamp as Name, command: told.command, step: from.running.step });
    }
  }

  /** Lets what is under way end, without losses from here on. */
  settle(): void {
    for (let round = 0; round < 200 && this.recorded.running !== undefined; round++) {
      this.nowMs += cacheTermMs;
      this.recorded = this.withoutLost(this.recorded);
      this.planned = this.recorded;
      for (const name of this.names) {
        this.refresh(name);
        this.seed(name);
        this.tellSeeded(name);
        for (let ships = 0; ships < this.writesMax; ships++) this.ship(name);
        this.deliverLate();
        this.acknowledge(name);
      }
      const [told, step] = [commandOf(this.recorded), this.recorded.running?.step];
      if (told === undefined || step === undefined) continue;
      this.sent = [{ to: told.stamp as Name, command: told.command, step }];
      this.answers = [];
      this.deliver();
      for (const answer of this.answers) this.recorded = unwrap(planAnswer(this.recorded, answer));
    }
    for (let round = 0; round < 20; round++) {
      this.nowMs += cacheTermMs;
      this.tellOwed();
    }
    assert.deepEqual(this.recorded.owed ?? [], [], "a lost stamp is not told everything");
    assert.equal(this.recorded.running, undefined, "an operation does not end");
    const primary = this.stamps[this.recorded.primary as Name];
    assert.equal(primary.row?.role, "primary", "P5: the primary of the record takes no writes");
    assert.equal(primary.row.peer, this.recorded.secondary, "P5: the primary ships to another stamp than the record says");
    const kept = new Set([...primary.log, ...this.aside]);
    if (this.lost === undefined)
      for (const write of this.acknowledged) assert.ok(kept.has(write), `P3: acknowledged write ${write} is nowhere`);
    for (const name of this.names) {
      if (name === this.recorded.primary || name === this.recorded.secondary) continue;
      const role = this.stamps[name].row?.role ?? "removed";
      assert.equal(role, "removed", "P7: a stamp that the record does not name has a copy");
    }
  }
}

function run(seed: number, rules: Rules, names: readonly Name[] = ["a", "b"], loses = false): string | undefined {
  const world = new World(seed, rules, names, loses);
  try {
    for (let step = 0; step < 500; step++) world.step();
    world.settle();
    return undefined;
  } catch (error) {
    return (error as Error).message.split("\n")[0];
  }
}

const seeds = 1_500;
const mutantSeeds = 12_000;

test("failover: in any order of commands, answers, crashes and shipments no acknowledged write is lost or taken twice", () => {
  for (let seed = 1; seed <= seeds; seed++) assert.equal(run(seed, allRules), undefined, `seed ${seed}`);
});

test("failover: copies that are made, removed and migrated between three stamps lose nothing and do not come back", () => {
  for (let seed = 1; seed <= seeds; seed++) assert.equal(run(seed, allRules, stamps), undefined, `seed ${seed}`);
});

test("failover: a stamp that is declared lost holds no operation up, and has no role when it was told what it is owed", () => {
  for (let seed = 1; seed <= 4 * seeds; seed++) assert.equal(run(seed, allRules, stamps, true), undefined, `seed ${seed}`);
});

const mutants: readonly (readonly [RuleName, RegExp])[] = [
  ["geoCommandsInOrder", /P1|P2|P3|P5|P6|does not end/],
  ["geoCachedRolesEnd", /P1|P2/],
  ["geoStepRecorded", /P1|P2|P3|P4|P5|P6|does not end/],
  ["geoShippedUnderEpoch", /P1|P3|P4|P6/],
  ["geoReportFromPromotion", /P4/],
  ["geoReportBeforeSeeding", /P3/],
];
for (const [rule, wrong] of mutants) {
  test(`failover: without ${rule} a run goes wrong`, () => {
    let found: string | undefined;
    let seed = 1;
    for (; seed <= mutantSeeds && found === undefined; seed++) found = run(seed, rulesWithout(rule));
    assert.match(found ?? `no seed of ${mutantSeeds} noticed`, wrong);
  });
}
