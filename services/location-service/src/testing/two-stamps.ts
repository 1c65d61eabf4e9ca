/**
 * A location with stamps that ship: real location and lock service over simulated time, stamps in memory, writers at the
 * front-ends of every stamp, and a judge of what was acknowledged.
 */
import assert from "node:assert/strict";
import { neededLevels, type Outcome, type RuleName, rulesWithout, unwrap } from "@stamp/base";
import { acceptsShipment, answersFromMs, commandWaitMs, reportComplete, seedingEnded } from "@stamp/geo";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { Simulation } from "@stamp/virtual-time";
import { LocationService, toWire } from "@stamp/wire";
import { locationServiceSchema } from "../config.ts";
import { LocationServiceRole } from "../location-service.ts";
import { FakeFrontEnd, FakeStamp, logAt, roleAt, type ShippingAt, type StampState, stampState } from "./fake-stamp.ts";

export const call = { timeoutMs: 20_000 };
export const said = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : `${outcome.failure.reason}: ${outcome.failure.message}`);
const shipEveryMs = 25;

export interface LocationOptions {
  readonly seed: number;
  readonly off?: readonly RuleName[];
  /** Feature level of the stamps. */
  readonly level?: number;
  /** True if copies are never completed. */
  readonly unseeded?: boolean;
}

export class TwoStamps {
  readonly sim: Simulation;
  readonly stamps = new Map<string, StampState>();
  readonly #frontEnds = new Map<string, FakeFrontEnd>();
  readonly #rules;
  /** Acknowledged writes of each account. */
  readonly acked = new Map<string, Set<number>>();
  /** Reports of deposed primaries. */
  readonly aside = new Map<string, Set<number>>();
  /** False while the link between the stamps is cut. */
  linked = true;
  #seeds: boolean;
  readonly #level: number;
  #next = 0;
  #running = true;
  readonly #first = new Map<string, number>();

  constructor({ seed, off, level = 1, unseeded }: LocationOptions) {
    this.#level = level;
    this.sim = new Simulation({ seed, ...(off === undefined ? {} : { rules: rulesWithout(...off) }) });
    this.#rules = this.sim.world("tester").rules;
    this.#seeds = unseeded !== true;
    const lock = lockServiceSchema.parse({ name: "lock", listen: "lock:1", init: true });
    this.sim.addProcess("lock:1", (world) => new LockServiceRole(world, lock));
    const config = locationServiceSchema.parse({ name: "location-1", listen: "location-1:1", lockService: "lock:1", drainMaxMs: 20_000 });
    this.sim.addProcess("location-1:1", (world) => new LocationServiceRole(world, config, () => world.transport));
  }

  get location() {
    return this.sim.world("tester").transport.client("location-1:1", LocationService);
  }

  state(name: string): StampState {
    const state = this.stamps.get(name);
    assert.ok(state, name);
    return state;
  }

  async leads(): Promise<void> {
    const leads = () => this.sim.isUp("location-1:1") && this.sim.role("location-1:1")?.status.state === "leader";
    await this.sim.until(leads, 60_000, "the location service leads");
  }

  /** Starts stamps and adds them. */
  async begin(...names: string[]): Promise<void> {
    await this.leads();
    const { clock } = this.sim.world("tester");
    for (const name of names) {
      const state = stampState(`id of ${name}`, 100);
      state.level = this.#level;
      state.shipping = (account) => this.#shipping(state, account);
      this.stamps.set(name, state);
      this.sim.addProcess(`${name}:1`, (world) => new FakeStamp(world, `${name}:1`, state));
      this.#frontEnds.set(name, new FakeFrontEnd(state, () => clock.monotonicMs()));
      await this.sim.sleep(10);
      unwrap(
        await this.location.addStamp({ name, location: name.split("-")[0] ?? "", lockService: `${name}:1`, doors: [`${name}:2`] }, call),
      );
    }
    void this.#ship();
  }

  end(): void {
    this.#running = false;
  }

  /** One write at each stamp's front-end. Returns the stamps that acknowledged one. */
  write(account: string): string[] {
    const taken: string[] = [];
    const acked = this.acked.get(account) ?? new Set();
    this.acked.set(account, acked);
    for (const [name, frontEnd] of this.#frontEnds) {
      if (!this.sim.isUp(`${name}:1`)) continue;
      const number = ++this.#next;
      if (!frontEnd.write(account, number)) continue;
      acked.add(number);
      taken.push(name);
    }
    return taken;
  }

  async account(name: string) {
    return unwrap(await this.location.getAccount({ account: name }, call));
  }

  /** Waits until no operation of the account is under way. */
  async idle(account: string, limitMs = 120_000) {
    for (let waitedMs = 0; waitedMs < limitMs; waitedMs += 250) {
      const found = await this.location.getAccount({ account }, { timeoutMs: 1_000 });
      if (found.ok && found.value.kind === "") return found.value;
      await this.sim.sleep(250);
    }
    return assert.fail(
      `the operation of ${account} does not end: ${JSON.stringify(await this.location.getAccount({ account }, call), replacer)}`,
    );
  }

  /** Waits until the account's copy is complete. */
  async protectedBy(account: string): Promise<void> {
    for (let waitedMs = 0; waitedMs < 60_000; waitedMs += 500) {
      if ((await this.account(account)).seeded) return;
      await this.sim.sleep(500);
    }
    assert.fail(`the copy of ${account} is not complete`);
  }

  /** Judges an account without an operation under way. */
  judge(account: string, primary: string, forced: boolean, what: string): void {
    const log = new Set(logAt(this.state(primary), account));
    const aside = this.aside.get(account) ?? new Set();
    const lost = [...(this.acked.get(account) ?? [])].filter((number) => !log.has(number) && !aside.has(number));
    assert.deepEqual(lost, [], `${what}: acknowledged writes that are nowhere`);
    assert.deepEqual(
      [...aside].filter((number) => log.has(number)),
      [],
      `${what}: reported as lost, and there`,
    );
    if (!forced) assert.deepEqual([...aside], [], `${what}: planned operations lose nothing`);
    assert.equal(roleAt(this.state(primary), account)?.role, "primary", what);
    assert.ok(this.write(account).includes(primary), `${what}: the primary takes writes`);
    const others = [...this.stamps].filter(([name, state]) => name !== primary && roleAt(state, account)?.role === "primary");
    assert.deepEqual(
      others.map(([name]) => name),
      [],
      `${what}: another primary`,
    );
  }

  /** Time since this was asked for first, in milliseconds. */
  #sinceMs(what: string): number {
    const nowMs = this.sim.world("tester").clock.monotonicMs();
    const firstMs = this.#first.get(what) ?? nowMs;
    this.#first.set(what, firstMs);
    return nowMs - firstMs;
  }

  /** Figures of an account's copy, as its primary tells them. */
  #shipping(source: StampState, account: string): ShippingAt {
    const from = roleAt(source, account);
    const target = this.stamps.get(from?.peer ?? "");
    const to = target && roleAt(target, account);
    const epoch = toWire(from?.epoch ?? 0);
    if (!target || to?.role !== "secondary" || from?.epoch !== to.epoch) return { account, epoch, trouble: "range r: it is seeded" };
    const pendingCommits = toWire(logAt(source, account).length - logAt(target, account).length);
    return { account, epoch, complete: true, pendingCommits };
  }

  async #ship(): Promise<void> {
    while (this.#running) {
      for (const state of this.stamps.values()) for (const name of state.accounts.keys()) if (this.linked) this.#shipOne(state, name);
      await this.sim.sleep(shipEveryMs);
    }
  }

  #shipOne(source: StampState, account: string): void {
    const role = roleAt(source, account);
    const target = this.stamps.get(role?.peer ?? "");
    if (role === undefined || target === undefined || (role.role !== "primary" && role.role !== "drained")) return;
    const address = [...this.stamps].find(([, each]) => each === target)?.[0];
    if (!this.sim.isUp(`${address}:1`)) return;
    let copy = target.roles.get(account);
    if (copy?.report?.complete === false && copy.epoch === role.epoch) {
      // Front-ends may still act on the role before: what they acknowledge belongs into the report.
      if (this.#sinceMs(`${address} ${account} ${copy.epoch}`) < answersFromMs(0, commandWaitMs({ kind: "demote" }), this.#rules)) return;
      const from = copy.report.from[0]?.sequence ?? 0;
      const aside = this.aside.get(account) ?? new Set();
      for (const number of logAt(target, account).slice(from)) aside.add(number);
      this.aside.set(account, aside);
      copy = reportComplete(copy);
      target.roles.set(account, copy);
    }
    if (!acceptsShipment(copy, role.epoch, this.#rules).ok || copy === undefined) return;
    const keys = source.accounts.get(account) ?? [];
    if (source.level >= neededLevels.pushedSettings) target.accounts.set(account, target.forgedKeys ?? keys);
    const [from, to] = [logAt(source, account), logAt(target, account)];
    if (copy.role === "unseeded") {
      if (!this.#seeds) return;
      to.splice(0, to.length, ...from);
      target.roles.set(account, seedingEnded(copy, role, this.#rules));
    } else if (from.length > to.length) to.push(from[to.length] as number);
  }
}

const replacer = (_key: string, value: unknown) => (typeof value === "bigint" ? Number(value) : value);
