/**
 * Rounds of faults of the three lock services that replicate the metadata store, on real processes, under writing clients. Each round ends
 * one lock service with SIGKILL, and may hurt its folder while it is down. The next round begins when every member has its standing again:
 * two faults of folders at once are not covered (docs/design/consensus.md).
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ProcessStatus } from "@stamp/cluster";
import { BlobClient, CheckingClient, type DrillTarget, startOwn } from "@stamp/drills";
import { Status } from "@stamp/wire";

const main = join(import.meta.dirname, "../../packages/cli/src/main.ts");
const mebibyte = 1_024 * 1_024;
/** In the order of the rounds. There are four kinds and three members, so twelve rounds give each kind to each member. */
const kinds = ["killed", "lost", "older", "bit"] as const;
/** Bound of a wait, in milliseconds. A drill that reaches it has failed. */
const waitMs = 120_000;

interface Consensus {
  readonly full: boolean;
  readonly role: string;
  readonly term: number;
  readonly store: number;
}

export interface Round {
  readonly kind: (typeof kinds)[number];
  readonly victim: string;
  readonly led: boolean;
  /** Longest time from a write's first attempt to its acknowledgement, in milliseconds, of the writes acknowledged in this round. */
  readonly longestMs: number;
  readonly acknowledged: number;
  /** True if the victim found its store damaged, and began an empty one. */
  readonly setAside: boolean;
}

export interface Ran {
  readonly checked: Awaited<ReturnType<CheckingClient["verify"]>>;
  readonly rounds: readonly Round[];
  /** Exit code of `stamp fsck` at the end, and what it found. */
  readonly fsck: { readonly code: number; readonly problems: readonly unknown[] };
}

/** Runs a cluster of its own through `count` rounds. */
export async function runRounds(count: number): Promise<Ran> {
  const target = await startOwn(
    {
      extentNodes: 3,
      // Extents that are left soon are many transactions of the metadata store.
      roles: { "partition-server": { extentTargetBytes: 2 * mebibyte } },
    },
    false,
  );
  const older = mkdtempSync(join(tmpdir(), "stamp-older-members-"));
  const client = BlobClient.fromConnectionString(target.connectionString);
  try {
    return await new Rounds(target, older, client).run(count);
  } finally {
    client.close();
    await target.close();
    rmSync(older, { recursive: true, force: true });
  }
}

/** Holds a run to what the stamp promises. */
export function assertKept({ checked, fsck }: Ran): void {
  assert.deepEqual(checked.broken, []);
  assert.deepEqual(fsck, { code: 0, problems: [] });
  assert.ok(checked.small.acknowledged > 0 && checked.large.acknowledged > 0 && checked.counter.acknowledged > 0);
  assert.ok(checked.readBack >= checked.small.acknowledged + checked.large.acknowledged);
}

class Rounds {
  readonly #target: DrillTarget;
  readonly #older: string;
  readonly #checking: CheckingClient;

  constructor(target: DrillTarget, older: string, client: BlobClient) {
    this.#target = target;
    this.#older = older;
    this.#checking = new CheckingClient({ client, container: "consensus", pauseMs: 20, largePauseMs: 500 });
  }

  async run(count: number): Promise<Ran> {
    await this.#checking.start();
    const rounds: Round[] = [];
    try {
      for (const { name, dataDir } of await this.#lockServices()) await this.#keep(name, dataDir);
      for (let number = 0; number < count; number++) {
        const round = await this.#round(number);
        const { kind, victim, led, longestMs, acknowledged, setAside } = round;
        const what = `${victim} ${kind}${setAside ? ", set aside" : ""}${led ? " (it led)" : ""}`;
        console.log(`round ${number + 1}: ${what}: longest write ${longestMs} ms, ${acknowledged} acknowledged`);
        rounds.push(round);
      }
    } finally {
      await this.#checking.stop(30_000);
    }
    const longestMs = Math.round(Math.max(...this.#checking.times.map(({ startMs, endMs }) => endMs - startMs)));
    const checked = await this.#checking.verify();
    const acknowledged = checked.small.acknowledged + checked.large.acknowledged + checked.counter.acknowledged;
    console.log(`${count} rounds: ${acknowledged} writes acknowledged, longest ${longestMs} ms, broken promises: ${checked.broken.length}`);
    return { checked, rounds, fsck: await this.#fsck() };
  }

  /** Copies the folder of a member while it is down. */
  async #keep(name: string, dataDir: string): Promise<void> {
    await this.#whole();
    await this.#target.ask({ do: "hold", name });
    cpSync(dataDir, join(this.#older, name), { recursive: true });
    await this.#target.ask({ do: "start", name });
  }

  async #round(number: number): Promise<Round> {
    await this.#whole();
    const members = await this.#lockServices();
    const kind = kinds[number % kinds.length] as Round["kind"];
    // A kill alone is for the leader: that of a follower nobody notices.
    const leader = members.find(({ consensus }) => consensus?.role === "leader");
    const victim = kind === "killed" ? leader : members[number % members.length];
    assert.ok(victim !== undefined);
    const from = this.#checking.times.length;
    await this.#strike(kind, victim.name, victim.dataDir);
    await this.#whole();
    await this.#writesOn();
    const times = this.#checking.times.slice(from);
    const after = (await this.#lockServices()).find(({ name }) => name === victim.name);
    return {
      kind,
      victim: victim.name,
      led: victim === leader,
      longestMs: Math.round(Math.max(...times.map(({ startMs, endMs }) => endMs - startMs))),
      acknowledged: times.length,
      setAside: kind === "bit" && (after?.consensus?.store ?? 0) > (victim.consensus?.store ?? 0),
    };
  }

  async #strike(kind: Round["kind"], name: string, dataDir: string): Promise<void> {
    if (kind === "killed") return void (await this.#target.ask({ do: "signal", name, signal: "SIGKILL" }));
    // Holding a process ends it with SIGKILL, and it stays down.
    await this.#target.ask({ do: "hold", name });
    if (kind === "bit") flipBit(dataDir);
    else rmSync(dataDir, { recursive: true });
    if (kind === "older") cpSync(join(this.#older, name), dataDir, { recursive: true });
    await this.#target.ask({ do: "start", name });
  }

  /** Waits until every lock service runs and has its standing, and one of them leads. */
  async #whole(): Promise<void> {
    await this.#until("every lock service has its standing", async () => {
      const members = await this.#lockServices();
      const leads = members.some(({ consensus, state }) => consensus?.role === "leader" && state === "serving");
      return leads && members.every(({ ready, consensus }) => ready && consensus?.full === true);
    });
  }

  /** Waits until writes that were begun after this call are acknowledged. */
  async #writesOn(): Promise<void> {
    const nowMs = performance.now();
    const { times } = this.#checking;
    await this.#until("writes go on", async () => times.filter(({ startMs }) => startMs > nowMs).length >= 20);
  }

  async #until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const startMs = performance.now();
    while (!(await holds())) {
      assert.ok(performance.now() - startMs < waitMs, `${what}: not within ${waitMs} ms: ${JSON.stringify(await this.#lockServices())}`);
      await new Promise((done) => setTimeout(done, 200));
    }
  }

  async #lockServices(): Promise<(ProcessStatus & { readonly dataDir: string; readonly consensus: Consensus | undefined })[]> {
    const { processes, dataDir } = await this.#target.status();
    const found = processes.filter(({ role }) => role === "lock-service");
    assert.equal(found.length, 3);
    return Promise.all(
      found.map(async (each) => ({ ...each, dataDir: join(dataDir, each.name), consensus: await this.#facts(each.grpc) })),
    );
  }

  async #facts(address: string): Promise<Consensus | undefined> {
    const answer = await this.#target.transport.client(address, Status).getStatus({}, { timeoutMs: 2_000 });
    return answer.ok ? (answer.value.facts as { readonly consensus?: Consensus } | undefined)?.consensus : undefined;
  }

  async #fsck(): Promise<Ran["fsck"]> {
    const { dataDir } = await this.#target.status();
    return new Promise((done) => {
      const args = [main, "fsck", "--json", "--data", dataDir];
      const child = execFile(process.execPath, args, { maxBuffer: 1 << 26 }, (_error, out) =>
        done({ code: child.exitCode ?? -1, problems: (JSON.parse(out) as { readonly problems: readonly unknown[] }).problems }),
      );
    });
  }
}

/** Changes one bit in the middle of the largest file of the store that counts. */
function flipBit(dataDir: string): void {
  const path = join(dataDir, "files/consensus-store");
  const number = existsSync(path) ? readFileSync(path, "utf8") : "1";
  const files = globSync(join(dataDir, `stores/consensus-${number}/*.{log,ldb}`));
  const [largest] = files.toSorted((a, b) => statSync(b).size - statSync(a).size);
  assert.ok(largest !== undefined, `no file of LevelDB is in ${dataDir}/stores/consensus-${number}`);
  const bytes = readFileSync(largest);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] as number) ^ 4;
  writeFileSync(largest, bytes);
}
