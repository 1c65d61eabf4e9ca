/** A gate before a server of fixed speed, on counted time: what each tenant feels; and what holds whatever is asked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import fc from "fast-check";
import { type Effect, Gate, type GateOptions, type Refusal, type Ticket } from "./gate.ts";

const options: GateOptions = {
  limitMin: 8,
  limitMax: 256,
  targetMs: 20,
  compared: "quickest",
  waitMaxMs: 500,
  waitAloneMaxMs: 10_000,
  waitingMax: 4_000,
};

interface Tenant {
  readonly account: string;
  readonly partitions: number;
  /** Each asks again when it was answered, after `pauseMs`; after a refusal it waits as long as it was told. */
  readonly clients: number;
  readonly pauseMs: number;
}

interface Felt {
  done: number;
  refused: number;
  readonly tookMs: number[];
  readonly byPartition: Map<string, { done: number; refused: number }>;
}

interface Client {
  readonly tenant: Tenant;
  readonly partition: string;
  readonly sinceMs: number;
}

/** Everything that is at work is served one after another, `perMs` in a millisecond, and then waits for its disk, all beside each other. */
class Server {
  readonly felt: Map<string, Felt>;
  readonly gate: Gate<Client>;
  readonly #perMs: number;
  readonly #diskMs: number;
  readonly #written: { readonly ticket: Ticket<Client>; readonly atMs: number }[] = [];
  readonly #prng = new Prng(3);
  readonly #queue: { ticket: Ticket<Client>; left: number }[] = [];
  readonly #due: { readonly atMs: number; readonly tenant: Tenant }[] = [];
  readonly #measuredFromMs: number;

  constructor(tenants: readonly Tenant[], perMs: number, gateOptions: Partial<GateOptions> = {}, measuredFromMs = 5_000, diskMs = 0) {
    this.gate = new Gate(new Prng(1), { ...options, ...gateOptions });
    this.#perMs = perMs;
    this.#diskMs = diskMs;
    this.#measuredFromMs = measuredFromMs;
    this.felt = new Map(tenants.map(({ account }) => [account, { done: 0, refused: 0, tookMs: [], byPartition: new Map() }]));
    for (const tenant of tenants) for (let i = 0; i < tenant.clients; i++) this.#due.push({ atMs: this.#prng.below(100), tenant });
  }

  run(forMs: number): this {
    let room = 0;
    for (let nowMs = 0; nowMs < forMs; nowMs++) {
      for (const { tenant } of this.#dueAt(nowMs)) this.#ask(nowMs, tenant);
      for (room += this.#perMs; this.#queue[0] && room >= this.#queue[0].left; ) {
        room -= this.#queue[0].left;
        this.#written.push({ ticket: (this.#queue.shift() as { ticket: Ticket<Client> }).ticket, atMs: nowMs + this.#diskMs });
      }
      while (this.#written[0] && this.#written[0].atMs <= nowMs)
        this.#done(nowMs, (this.#written.shift() as { ticket: Ticket<Client> }).ticket);
      const first = this.#queue[0];
      if (first) first.left -= room;
      room = 0;
    }
    return this;
  }

  of(account: string): Felt {
    return this.felt.get(account) as Felt;
  }

  #dueAt(nowMs: number): { readonly tenant: Tenant }[] {
    const due = this.#due.filter(({ atMs }) => atMs <= nowMs);
    if (due.length > 0) this.#due.splice(0, this.#due.length, ...this.#due.filter(({ atMs }) => atMs > nowMs));
    return due;
  }

  #ask(nowMs: number, tenant: Tenant): void {
    const partition = `${tenant.account}/${this.#prng.below(tenant.partitions)}`;
    const client = { tenant, partition, sinceMs: nowMs };
    this.#act(nowMs, this.gate.offer(nowMs, { account: tenant.account, partition, kind: "write" }, client));
  }

  #act(nowMs: number, effects: readonly Effect<Client>[]): void {
    for (const effect of effects) {
      if (effect.kind === "start") this.#queue.push({ ticket: effect.ticket, left: 1 });
      else this.#refused(nowMs, effect.item, effect.refusal);
    }
  }

  #refused(nowMs: number, { tenant, partition }: Client, { retryAfterMs }: Refusal): void {
    if (nowMs >= this.#measuredFromMs) {
      this.#count(tenant, partition).refused++;
      this.of(tenant.account).refused++;
    }
    this.#due.push({ atMs: nowMs + Math.max(1_000, retryAfterMs), tenant });
  }

  #done(nowMs: number, ticket: Ticket<Client>): void {
    const { tenant, partition, sinceMs } = ticket.item;
    const felt = this.of(tenant.account);
    if (nowMs >= this.#measuredFromMs) {
      this.#count(tenant, partition).done++;
      felt.done++;
      felt.tookMs.push(nowMs - sinceMs);
    }
    this.#due.push({ atMs: nowMs + 1 + tenant.pauseMs, tenant });
    this.#act(nowMs, this.gate.ended(nowMs, ticket));
  }

  #count({ account }: Tenant, partition: string): { done: number; refused: number } {
    const { byPartition } = this.of(account);
    let count = byPartition.get(partition);
    count ??= { done: 0, refused: 0 };
    byPartition.set(partition, count);
    return count;
  }
}

const p99 = ({ tookMs }: Felt): number => tookMs.sort((a, b) => a - b)[Math.floor(tookMs.length * 0.99)] as number;

const quiet: Tenant = { account: "quiet", partitions: 16, clients: 4, pauseMs: 20 };
const flood: Tenant = { account: "flood", partitions: 64, clients: 512, pauseMs: 0 };
/** Lets everybody in at once. */
const open: Partial<GateOptions> = { limitMin: 5_000, limitMax: 5_000 };

test("gate: one who floods waits behind itself; another keeps its latency and is never refused", () => {
  const without = new Server([quiet, flood], 0.5, open).run(20_000);
  const both = new Server([quiet, flood], 0.5).run(20_000);
  assert.ok(p99(without.of("quiet")) > 800, `everybody let in, all wait alike: ${p99(without.of("quiet"))} ms`);
  assert.ok(p99(both.of("quiet")) < 60, `p99 ${p99(both.of("quiet"))} ms`);
  assert.equal(both.of("quiet").refused, 0);
  assert.ok(both.of("quiet").done > 4 * without.of("quiet").done, "and it gets as much done as it asks for");
  assert.ok(both.of("flood").refused > 0, "who floods is refused what would wait too long");
  assert.ok(p99(both.of("flood")) < 1_600, `what is let in is answered: ${p99(both.of("flood"))} ms`);
  const [done, before] = [both, without].map((run) => run.of("quiet").done + run.of("flood").done) as [number, number];
  assert.ok(done > 0.98 * before, `the server stays as busy: ${done} of ${before}`);
});

test("gate: while one floods for minutes the others' latency does not creep up: what is usual is not learned from a queue that stands", () => {
  const perMs = 2;
  const both = new Server([quiet, flood], perMs, { limitMin: 16, targetMs: 10 }, 150_000).run(180_000);
  assert.ok(p99(both.of("quiet")) < 25, `p99 ${p99(both.of("quiet"))} ms`);
  assert.ok(both.of("flood").done > 0.9 * perMs * 30_000, `${both.of("flood").done} done in half a minute`);
});

test("gate: a slow disk is not a queue: what waits for it beside others is not kept at the least", () => {
  const [perMs, diskMs] = [2, 25];
  const both = new Server([quiet, flood], perMs, { limitMin: 16, targetMs: 10 }, 60_000, diskMs).run(90_000);
  const alone = new Server([quiet], perMs, {}, 5_000, diskMs).run(20_000);
  assert.ok(both.of("flood").done > (1.5 * 16 * 30_000) / diskMs, `${both.of("flood").done} done in half a minute`);
  assert.ok(p99(both.of("quiet")) < 2 * p99(alone.of("quiet")), `p99 ${p99(both.of("quiet"))} ms`);
});

test("gate: a tenant that is alone may fill the server, is let to work in numbers, and is not refused", () => {
  const alone = new Server([flood], 0.5).run(20_000);
  assert.equal(alone.of("flood").refused, 0);
  assert.equal(alone.gate.figures(20_000).limit, options.limitMax);
  assert.deepEqual(alone.gate.figures(20_000).shed, []);
});

test("gate: of one hot PartitionName only its own requests are refused, the rest of its account goes on", () => {
  const hot: Tenant = { account: "a", partitions: 1, clients: 400, pauseMs: 0 };
  const rest: Tenant = { account: "a", partitions: 20, clients: 4, pauseMs: 50 };
  const run = new Server([{ ...rest, partitions: 20 }, hot], 0.4).run(20_000);
  const others = [...run.of("a").byPartition].filter(([name]) => name !== "a/0").map(([, count]) => count);
  const own = run.of("a").byPartition.get("a/0");
  assert.ok((own?.refused ?? 0) > 0, "of the hot one some are refused");
  assert.equal(
    others.reduce((sum, { refused }) => sum + refused, 0),
    0,
  );
  assert.ok(run.gate.figures(20_000).heaviest.some(({ name, share }) => name === "a/0" && share > 0.6));
});

test("gate: a PartitionName that is asked for three times out of four, of four, is not hot", () => {
  const gate = new Gate<number>(new Prng(1), options);
  for (let i = 0; i < 40; i++) {
    const name = i % 4 === 0 ? "a/1" : "a/0";
    const [effect] = gate.offer(i * 300, { account: "a", partition: name, kind: "write" }, i);
    if (effect?.kind === "start") gate.ended(i * 300 + 250, effect.ticket);
  }
  assert.equal(gate.figures(12_000).contended, false);
});

test("gate: many equal tenants that are too much together share what there is, and what is let in is answered in time", () => {
  const tenants = Array.from({ length: 20 }, (_, i): Tenant => ({ account: `t${i}`, partitions: 8, clients: 40, pauseMs: 0 }));
  const run = new Server(tenants, 0.5).run(20_000);
  const done = tenants.map(({ account }) => run.of(account).done);
  assert.ok(Math.min(...done) > 0.8 * Math.max(...done), `${Math.min(...done)} to ${Math.max(...done)}`);
  for (const { account } of tenants) assert.ok(p99(run.of(account)) < 3_000, `${account}: ${p99(run.of(account))} ms`);
});

test("gate: who was shed is let in again when the others are gone", () => {
  const gate = new Gate<number>(new Prng(1), { ...options, limitMin: 1, limitMax: 1 });
  const ask = (nowMs: number, account: string) => gate.offer(nowMs, { account, partition: `${account}/1`, kind: "write" }, 0);
  const first = ask(0, "a")[0] as Extract<Effect<number>, { kind: "start" }>;
  const other = ask(1, "b")[0] as Extract<Effect<number>, { kind: "start" }>;
  assert.equal(other.kind, "start", "an account with nothing at work does not wait for one that has");
  assert.deepEqual(ask(2, "a"), []);
  const refused = ask(600, "a")[0] as Extract<Effect<number>, { kind: "refuse" }>;
  assert.deepEqual([refused.kind, refused.refusal], ["refuse", { why: "partition waits too long", retryAfterMs: 598 }]);
  gate.ended(610, other.ticket);
  gate.ended(611, first.ticket);
  assert.deepEqual(ask(612, "a"), [], "one of its own is at work");
  assert.deepEqual(ask(20_612, "a").length, 1, "alone, and for longer than anybody waits");
  assert.equal(gate.figures(20_613).contended, false);
});

test("gate: when too many wait, the newest of the account that has most of them goes, not the one that comes", () => {
  const gate = new Gate<string>(new Prng(1), { ...options, limitMin: 1, limitMax: 1, waitingMax: 4 });
  const ask = (account: string, item: string) => gate.offer(0, { account, partition: item, kind: "read" }, item);
  ask("a", "a0");
  ask("b", "b0");
  for (const item of ["a1", "a2", "a3", "a4"]) assert.deepEqual(ask("a", item), []);
  const refused = (effects: readonly Effect<string>[]) => effects.map((effect) => (effect.kind === "refuse" ? effect.item : "?"));
  assert.deepEqual(refused(ask("a", "a5")), ["a5"]);
  assert.deepEqual(refused(ask("b", "b1")), ["a4"]);
  assert.deepEqual(refused(ask("b", "b2")), ["a3"]);
  assert.deepEqual(refused(ask("b", "b3")), ["b3"], "now both have as many");
  assert.equal(gate.waiting, 4);
});

test("gate, whatever is asked: each is started or refused once, in order, none waits while there is room, and shares are equal", () => {
  const step = fc.oneof(
    { weight: 3, arbitrary: fc.record({ account: fc.nat(3), partition: fc.nat(2), read: fc.boolean() }) },
    { weight: 2, arbitrary: fc.record({ end: fc.nat() }) },
    { weight: 1, arbitrary: fc.record({ passMs: fc.nat(400) }) },
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 5 }), (steps, limitMax) => {
      const gate = new Gate<number>(new Prng(1), { ...options, limitMin: 1, limitMax, waitingMax: 20 });
      const [atWork, settled]: [Ticket<number>[], Set<number>] = [[], new Set()];
      const order = new Map<string, number>();
      let [nowMs, offered] = [0, 0];
      const act = (effects: readonly Effect<number>[]): void => {
        for (const effect of effects) {
          const item = effect.kind === "start" ? effect.ticket.item : effect.item;
          assert.ok(!settled.has(item), "once");
          settled.add(item);
          if (effect.kind !== "start") continue;
          const { partition } = effect.ticket.asked;
          assert.ok((order.get(partition) ?? -1) < item, "in the order of its PartitionName");
          order.set(partition, item);
          atWork.push(effect.ticket);
        }
      };
      for (const one of steps) {
        if ("passMs" in one) nowMs += one.passMs;
        else if ("end" in one) {
          const [ticket] = atWork.splice(one.end % Math.max(1, atWork.length), 1);
          if (ticket) act(gate.ended(nowMs, ticket));
        } else {
          const asked = {
            account: `a${one.account}`,
            partition: `a${one.account}/${one.partition}`,
            kind: one.read ? "read" : "write",
          } as const;
          act(gate.offer(nowMs, asked, offered++));
        }
        const { limit, waiting } = gate.figures(nowMs);
        assert.equal(gate.atWork, atWork.length);
        assert.equal(settled.size + waiting, offered, "nothing is lost");
        assert.ok(atWork.length <= 2 * limitMax && waiting <= 20);
        const acted = "end" in one || "account" in one;
        assert.ok(!acted || waiting === 0 || atWork.length >= limit, "none waits while there is room");
      }
      while (atWork.length > 0) act(gate.ended(nowMs, atWork.shift() as Ticket<number>));
      assert.equal(settled.size, offered, "and in the end nobody waits");
      assert.equal(gate.figures(nowMs).accounts, 0, "nor is anybody remembered");
    }),
  );
});

test("gate: two that always wait get as much of what is at work, whatever each asks for", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 8 }).map((half) => 2 * half),
      fc.integer({ min: 1, max: 30 }),
      fc.integer({ min: 1, max: 30 }),
      (limit, one, other) => {
        const gate = new Gate<number>(new Prng(1), { ...options, limitMin: limit, limitMax: limit, waitMaxMs: 1e9, waitAloneMaxMs: 1e9 });
        const atWork: { ticket: Ticket<number>; untilMs: number }[] = [];
        const lasts = { a: one, b: other } as const;
        const usedMs = { a: 0, b: 0 };
        let nowMs = 0;
        const act = (effects: readonly Effect<number>[]): void => {
          for (const effect of effects) {
            if (effect.kind === "start")
              atWork.push({ ticket: effect.ticket, untilMs: nowMs + lasts[effect.ticket.asked.account as "a" | "b"] });
          }
        };
        const ask = (account: "a" | "b") => act(gate.offer(nowMs, { account, partition: account, kind: "read" }, 0));
        for (let i = 0; i < 100; i++) for (const account of ["a", "b"] as const) ask(account);
        for (; nowMs < 600; nowMs++) {
          for (const done of atWork.filter(({ untilMs }) => untilMs <= nowMs)) {
            atWork.splice(atWork.indexOf(done), 1);
            ask(done.ticket.asked.account as "a" | "b");
            act(gate.ended(nowMs, done.ticket));
          }
          for (const { ticket } of atWork) usedMs[ticket.asked.account as "a" | "b"]++;
        }
        const share = usedMs.a / (usedMs.a + usedMs.b);
        assert.ok(share > 0.4 && share < 0.6, `${share} of the server with ${limit} at work, ${one} and ${other} ms each`);
      },
    ),
    { numRuns: 40 },
  );
});
