/**
 * A bank: accounts in branches (a PartitionKey each), money that goes from accounts to others of the same branch by entity group
 * transactions, accounts that are closed and opened by them, while the table's ranges are split, merged and moved by command and by the
 * load balancer, and processes of every role fail. Whoever sees all of a branch at one moment sees all of its money; one order must
 * explain every answer, where a page is one moment, also when it shows many branches.
 */
import type { Prng } from "@stamp/base";
import type { BatchCall, RecordedOperation } from "@stamp/linearizability";
import { batchModel, checkHistory, describeVerdict } from "@stamp/linearizability";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import type { Account, AccountChange, Page, Teller } from "./clients/bank-tellers.ts";
import { accountCount, accountsPerBranch, branchCount, branchOf, HttpTeller, OldMapTeller } from "./clients/bank-tellers.ts";
import { simulatedCluster } from "./cluster.ts";
import type { Focus } from "./faults/fault-kinds.ts";
import { Faults } from "./faults/faults.ts";
import type { Tally } from "./run/workload.ts";

const workMs = 40_000;
const pauseMaxMs = 400;
const readyWithinMs = 60_000;
/** Time within which, after the last fault, everything is served and no split or merge is left. */
const healedWithinMs = 60_000;
const openingBalance = 100;
const pagesMax = 40;

export async function bankWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const prng = sim.prng;
  const cluster = simulatedCluster(sim, {
    partitionServers: 3,
    leaseMarginMs: prng.pick([20, 1_000]),
    lookEveryMs: prng.pick([50, 500]),
    partitionManager: {
      balanceEveryMs: prng.pick([1_500, 5_000]),
      balanceRestMs: prng.pick([1_000, 6_000]),
      splitRequestsPerSecond: prng.pick([3, 6, 1_000]),
      mergeRequestsPerSecond: prng.pick([0, 1, 4]),
      moveRequestsPerSecond: prng.pick([1, 3]),
      rangesMax: 16,
      reshapeTimeoutMs: prng.pick([1_500, 8_000]),
    },
  });
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const oldMaps = Array.from({ length: 3 }, (_, i) => new OldMapTeller(sim, `client-${i + 1}`, cluster));
  const http = Array.from({ length: 2 }, (_, i) => new HttpTeller(sim, `http-${i + 1}`, cluster));
  const run = new Run(sim, tally);
  await run.open(http[0] as HttpTeller, oldMaps);
  const faults = new Faults(sim, {
    targets: cluster.processes,
    clients: [],
    pace: 3,
    focus,
    withinMs: workMs,
    reshapes: { cluster, table: "Entity", key: (chooser) => oldMaps[0]?.branchStart(chooser.below(branchCount)), weight: 40 },
  });
  tally.faults = faults.counts;
  faults.start();
  const endMs = sim.nowMs + workMs;
  const tellers = [...oldMaps, ...http];
  await Promise.all(tellers.map((teller) => run.work(teller, prng.fork(), endMs)));
  await faults.heal();
  await run.within("every process is ready after the last fault", async () => cluster.ready());
  await run.within("no split or merge is left over", async () => {
    const ranges = await faults.reshapes?.ranges();
    return ranges?.every(({ loaded, change }) => loaded && change === "") === true;
  });
  for (const teller of tellers) await run.countAll(teller);
  run.judge();
}

class Run {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #history: RecordedOperation<BatchCall>[] = [];
  /** Values that every write put into each of its accounts, by write and number. */
  readonly #written = new Map<string, { readonly balance: number; readonly pad: string }>();
  /** Accounts as anybody saw them last. */
  readonly #known: (Account | undefined)[] = Array.from({ length: accountCount });
  readonly #padMax: number;
  #writeNext = 1;

  constructor(sim: Simulation, tally: Tally) {
    this.#sim = sim;
    this.#tally = tally;
    this.#padMax = sim.prng.pick([10, 400, 4_000]);
  }

  /** The table, and half of the accounts of each branch. */
  async open(first: HttpTeller, others: readonly OldMapTeller[]): Promise<void> {
    await this.within("the table is made", () => first.createTable());
    for (const teller of others) await this.within("a client knows the table", () => teller.start());
    for (let branch = 0; branch < branchCount; branch++) {
      await this.within("a branch is opened", async () => {
        const write = this.#writeNext++;
        const accounts = Array.from({ length: accountsPerBranch / 2 }, (_, i) => branch * accountsPerBranch + 2 * i);
        const done = await this.#change(
          first,
          accounts.map((number) => ({ number, from: undefined, to: this.#put(write, number, openingBalance) })),
        );
        return done !== "notDone";
      });
    }
  }

  async work(teller: Teller, prng: Prng, endMs: number): Promise<void> {
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(prng.float() * pauseMaxMs);
      const number = prng.below(accountCount);
      const dice = prng.below(100);
      if (dice < 15) await this.#read(teller, number);
      else if (dice < 30) await this.#scan(teller, number, true);
      else if (dice < 45) await this.#scan(teller, prng.chance(0.6) ? 0 : number, false);
      else {
        const first = number - (number % accountsPerBranch);
        // An account that is not looked at before may be old: then the transfer is refused.
        if (prng.chance(0.5)) await this.#scan(teller, first, true);
        await this.#transfer(teller, first, prng);
      }
    }
  }

  /** After the last fault: all accounts, by this way to reach them. */
  async countAll(teller: Teller): Promise<void> {
    await this.within("all accounts are read", () => this.#scan(teller, 0, false));
  }

  /** Each branch for itself first: what is wrong there is said in fewer words. Then all of them: a page of several is one moment too. */
  judge(): void {
    const model = batchModel(accountCount);
    const branches = Array.from({ length: branchCount }, (_, branch) => this.#history.flatMap((operation) => ofBranch(operation, branch)));
    for (const history of [...branches, this.#history]) {
      const verdict = checkHistory(model, history);
      if (verdict.kind === "violation") throw new BrokenPromise(describeVerdict(model, verdict));
      if (verdict.kind === "unknown") this.#count("NOT DECIDED histories");
    }
  }

  async within(what: string, attempt: () => Promise<boolean>): Promise<void> {
    const endMs = this.#sim.nowMs + healedWithinMs;
    while (!(await attempt())) {
      if (this.#sim.nowMs > endMs) throw new BrokenPromise(`not within ${healedWithinMs} ms: ${what}`);
      await this.#sim.sleep(200);
    }
  }

  async #read(teller: Teller, number: number): Promise<void> {
    const calledAt = this.#sim.nowMs;
    const page = await teller.read(number);
    this.#count(page ? "read ok" : "read unanswered");
    if (page) this.#saw(page, calledAt);
  }

  /** True when it came to the end. */
  async #scan(teller: Teller, from: number, branchOnly: boolean): Promise<boolean> {
    const what = branchOnly ? "scan of a branch" : "scan of all";
    let at: number | undefined = from;
    for (let page = 0; at !== undefined && page < pagesMax; page++) {
      const calledAt = this.#sim.nowMs;
      const found: Awaited<ReturnType<Teller["scan"]>> = await teller.scan(at, branchOnly);
      if (!found) break;
      for (const each of found.pages) this.#saw(each, calledAt);
      at = found.next;
    }
    this.#count(`${what} ${at === undefined ? "ok" : "unanswered"}`);
    return at === undefined;
  }

  #saw(page: Page, calledAt: number): void {
    const { first, accounts } = page;
    if (accounts.length === 0) return;
    for (const [i, account] of accounts.entries()) {
      if (account) this.#check(first + i, account);
      this.#known[first + i] = account;
    }
    for (let at = 0; at < accountCount; at += accountsPerBranch) {
      if (at < first || at + accountsPerBranch > first + accounts.length) continue;
      const branch = accounts.slice(at - first, at - first + accountsPerBranch);
      const total = branch.reduce((sum, account) => sum + (account?.balance ?? 0), 0);
      // It is opened by one transaction: nothing or everything is there.
      const expected = branch.every((account) => account === undefined) ? [0] : [(openingBalance * accountsPerBranch) / 2];
      if (!expected.includes(total)) throw new BrokenPromise(`branch ${branchOf(at)} holds ${total}: ${shown(branch)}`);
    }
    const values = accounts.map((account) => account?.write ?? 0);
    this.#history.push({ call: { kind: "read", first, values }, calledAt, returnedAt: this.#sim.nowMs });
    this.#tally.most["accounts of one page"] = Math.max(this.#tally.most["accounts of one page"] ?? 0, accounts.length);
  }

  #check(number: number, { write, balance, pad }: Account): void {
    const expected = this.#written.get(`${write} ${number}`);
    if (!expected || expected.balance !== balance || expected.pad !== pad)
      throw new BrokenPromise(`account ${number} holds ${balance} of write ${write}, which wrote ${expected?.balance ?? "nothing"} there`);
  }

  /** Money of one account goes to one or two others; an emptied one may be closed, one that is not there is opened. */
  async #transfer(teller: Teller, first: number, prng: Prng): Promise<void> {
    const numbers = prng.shuffle(Array.from({ length: accountsPerBranch }, (_, i) => first + i));
    const source = numbers.find((number) => (this.#known[number]?.balance ?? 0) > 0);
    const from = source === undefined ? undefined : this.#known[source];
    if (source === undefined || !from) return;
    const write = this.#writeNext++;
    const targets = numbers.filter((number) => number !== source).slice(0, 1 + prng.below(2));
    let left = from.balance;
    const changes = targets.map((number): AccountChange => {
      const amount = prng.chance(0.3) ? left : prng.below(left + 1);
      left -= amount;
      const known = this.#known[number];
      return { number, from: known, to: this.#put(write, number, (known?.balance ?? 0) + amount) };
    });
    const closes = left === 0 && prng.chance(0.6);
    changes.push({ number: source, from, to: closes ? undefined : this.#put(write, source, left) });
    const kind = await this.#change(teller, prng.shuffle(changes));
    this.#count(`transfer ${kind}`);
  }

  #put(write: number, number: number, balance: number): Omit<Account, "timestamp"> {
    const pad = `${write}.`.repeat(1 + Math.floor((((write * 7_919) % 97) / 97) ** 2 * (this.#padMax / 4)));
    this.#written.set(`${write} ${number}`, { balance, pad });
    return { write, balance, pad };
  }

  async #change(teller: Teller, changes: readonly AccountChange[]): Promise<string> {
    const calledAt = this.#sim.nowMs;
    const done = await teller.change(changes);
    if (done.kind === "notDone") return done.kind;
    const told = done.kind === "unknown" ? undefined : done.kind === "done";
    const cells = changes.map(({ number, from, to }) => ({ cell: number, from: from?.write ?? 0, to: to?.write ?? 0 }));
    const returnedAt = told === undefined ? undefined : this.#sim.nowMs;
    this.#history.push({ call: { kind: "batch", changes: cells, done: told }, calledAt, returnedAt });
    if (done.kind === "done" && done.timestamps.length === changes.length) {
      for (const [i, { number, to }] of changes.entries()) this.#known[number] = to && { ...to, timestamp: done.timestamps[i] as bigint };
    }
    return done.kind;
  }

  #count(what: string): void {
    this.#tally.counts[what] = (this.#tally.counts[what] ?? 0) + 1;
  }
}

/** Returns the part of an operation about the accounts of one branch. */
function ofBranch(operation: RecordedOperation<BatchCall>, branch: number): RecordedOperation<BatchCall>[] {
  const { call } = operation;
  const low = branch * accountsPerBranch;
  if (call.kind === "batch") return branchOf(call.changes[0]?.cell ?? 0) === branch ? [operation] : [];
  const first = Math.max(call.first, low);
  const values = call.values.slice(first - call.first, Math.max(0, low + accountsPerBranch - call.first));
  return values.length === 0 ? [] : [{ ...operation, call: { kind: "read", first, values } }];
}

const shown = (accounts: readonly (Account | undefined)[]): string =>
  accounts.map((account) => (account ? `${account.balance} of write ${account.write}` : "–")).join(", ");
