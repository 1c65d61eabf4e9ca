/**
 * Two gateways open files of a share, use them, mark them for deletion and close them, or fall silent with files open; clients of REST write
 * and delete the same files. Faults stop processes and move ranges meanwhile. What is promised of handles (handle-judge.ts) must hold; after
 * the faults and the end of all sessions every file can be written.
 */
import { makeToken } from "@stamp/azure-rest";
import type { Prng } from "@stamp/base";
import { until } from "@stamp/histories";
import { lockServices } from "@stamp/metadata-store";
import { routeOf } from "@stamp/objects";
import type { Client } from "@stamp/ports";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import { FileHandles, LockService } from "@stamp/wire";
import { HttpClient } from "../clients/http-client.ts";
import { simulatedCluster, type WholeCluster } from "../cluster.ts";
import { Faults } from "../faults/faults.ts";
import { stageOf } from "../run/stage.ts";
import type { Workload } from "../run/workload.ts";
import { HandleJudge, type HeldHandle } from "./handle-judge.ts";

const workMs = 60_000;
const readyWithinMs = 60_000;
const healedWithinMs = 120_000;
const share = "opened";
const files = ["a", "b"] as const;
const fileBytes = 8;
const termMs = 6_000;
/** The session has ended for its gateway so long before the lock service may say so, in milliseconds. */
const marginMs = 500;
const renewEveryMs = 1_500;
const timeoutMs = 3_000;
const tokenMs = 24 * 3_600_000;
/** Time after which a request without an answer has happened, or never will: deadlines are at most 30 s. */
const lateMs = 60_000;
const [all, none] = [7, 0];

export const handleWorkload: Workload = async (sim, tally, focus) => {
  const cluster = simulatedCluster(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const stage = stageOf(sim, tally);
  const key = (prng: Prng): Uint8Array => {
    const name = { account: cluster.account, container: `~${share}`, containerIncarnation: 1, blob: prng.below(16).toString(16) };
    return routeOf(sim.rules, { case: "getBlob", value: { name } }).key;
  };
  const reshapes = { cluster, table: "Blob", key, weight: 3 } as const;
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs, reshapes });
  tally.faults = faults.counts;
  const judge = new HandleJudge();
  const clients = [1, 2].map((number) => new RestClient(sim, cluster, `client-${number}`, judge, stage.count));
  const gateways = [1, 2].map((number) => new Gateway(sim, cluster, `gateway-${number}`, judge, stage.count));
  const first = clients[0] as RestClient;
  const bound = { withinMs: healedWithinMs, pauseMs: 500 };
  await until(stage, "the share and its files are made", bound, () => first.prepare());
  faults.start();
  const endMs = sim.nowMs + workMs;
  await Promise.all([...clients, ...gateways].map((each) => each.work(endMs)));
  await faults.heal();
  const wrong = judge.check();
  if (wrong !== undefined) throw new BrokenPromise(wrong);
  // All gateways are silent: their sessions end within a term, and nothing is in the way any more.
  for (const file of files) await until(stage, `${file} can be written`, bound, () => first.writes(file));
};

class RestClient {
  readonly #sim: Simulation;
  readonly #http: HttpClient;
  readonly #judge: HandleJudge;
  readonly #count: (what: string) => void;
  readonly #prng: Prng;

  constructor(sim: Simulation, cluster: WholeCluster, name: string, judge: HandleJudge, count: (what: string) => void) {
    this.#sim = sim;
    this.#http = new HttpClient(sim, sim.world(name), name, cluster, "file");
    this.#judge = judge;
    this.#count = count;
    this.#prng = sim.prng.fork();
  }

  async prepare(): Promise<boolean> {
    const made = await this.#http.request("PUT", `/${share}?restype=share`, version);
    if (made?.status !== 201 && made?.status !== 409) return false;
    for (const file of files) if (!(await this.#create(file))) return false;
    return true;
  }

  async work(endMs: number): Promise<void> {
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(this.#prng.below(400));
      const file = this.#prng.pick(files);
      const dice = this.#prng.below(100);
      if (dice < 75) await this.#write(file);
      else if (dice < 85) await this.#ask(file, "delete", "DELETE", {});
      else await this.#create(file);
    }
  }

  /** Makes the file if it is gone. */
  async writes(file: string): Promise<boolean> {
    return (await this.#write(file)) || ((await this.#create(file)) && (await this.#write(file)));
  }

  #create(file: string): Promise<boolean> {
    return this.#ask(file, "create", "PUT", { "x-ms-type": "file", "x-ms-content-length": String(fileBytes) });
  }

  #write(file: string): Promise<boolean> {
    const headers = { "x-ms-write": "update", "x-ms-range": "bytes=0-0" };
    return this.#ask(file, "write", "PUT", headers, Uint8Array.of(this.#prng.below(256)), "?comp=range");
  }

  async #ask(file: string, what: string, method: string, headers: object, body?: Uint8Array, query = ""): Promise<boolean> {
    const sentMs = this.#sim.nowMs;
    const answer = await this.#http.request(method, `/${share}/${file}${query}`, { ...version, ...headers }, body ?? new Uint8Array(0));
    const isDone = answer !== undefined && answer.status < 300;
    this.#count(`${what} ${isDone ? "done" : (answer?.headers["x-ms-error-code"] ?? "unknown")}`);
    const isLate = answer === undefined || answer.status >= 500;
    if (what === "delete" && (isDone || isLate)) {
      this.#judge.mayHaveDeleted({ file, sentMs, answeredMs: this.#sim.nowMs + (isDone ? 0 : lateMs) });
    }
    if (isDone) this.#judge.done({ file, what, sentMs, answeredMs: this.#sim.nowMs });
    return isDone;
  }
}

const version = { "x-ms-version": "2025-05-05" };

/** A handle that the gateway believes to have. */
interface Own {
  readonly handle: string;
  readonly held: HeldHandle;
}

class Gateway {
  readonly #sim: Simulation;
  readonly #name: string;
  readonly #account: string;
  readonly #judge: HandleJudge;
  readonly #count: (what: string) => void;
  readonly #prng: Prng;
  readonly #files: Client<typeof FileHandles>;
  readonly #locks: Client<typeof LockService>;
  readonly #options: { readonly timeoutMs: number; readonly metadata: { readonly authorization: string } };
  #epoch: bigint | undefined;
  #renewedMs = 0;
  #own: Own[] = [];

  constructor(sim: Simulation, cluster: WholeCluster, name: string, judge: HandleJudge, count: (what: string) => void) {
    const world = sim.world(name);
    this.#sim = sim;
    this.#name = name;
    this.#account = cluster.account;
    this.#judge = judge;
    this.#count = count;
    this.#prng = sim.prng.fork();
    this.#files = world.transport.client(cluster.addressOf(cluster.frontEnd), FileHandles);
    this.#locks = lockServices(world, cluster.lockService, LockService);
    const claims = { account: cluster.account, expiresMs: world.clock.wallMs() + tokenMs };
    const token = makeToken(claims, cluster.accountKey, (key, message) => world.digest.hmacSha256(key, message));
    this.#options = { timeoutMs, metadata: { authorization: `Bearer ${token}` } };
  }

  async work(endMs: number): Promise<void> {
    while (this.#sim.nowMs < endMs) {
      await this.#sim.sleep(this.#prng.below(500));
      if (!(await this.#hasSession())) continue;
      const dice = this.#prng.below(100);
      const own = this.#own.length > 0 ? this.#prng.pick(this.#own) : undefined;
      if (own === undefined || (dice < 30 && this.#own.length < 3)) await this.#open(this.#prng.pick(files));
      else if (dice < 70) await this.#use(own);
      else if (dice < 80) await this.#mark(own);
      else if (dice < 97) await this.#close(own);
      else this.#fallSilent();
    }
    this.#fallSilent();
  }

  /** Renews the session, or takes a new one; files that were open under an older one count for nothing. */
  async #hasSession(): Promise<boolean> {
    const { nowMs } = this.#sim;
    const name = `files/${this.#name}`;
    if (this.#epoch !== undefined && nowMs >= this.#renewedMs + termMs - marginMs) this.#fallSilent();
    if (this.#epoch !== undefined && nowMs < this.#renewedMs + renewEveryMs) return true;
    if (this.#epoch === undefined) {
      const request = { name, holder: this.#name, incarnation: 1n, address: this.#name, termMs, identity: this.#name };
      const taken = await this.#locks.acquireLease(request, { timeoutMs: 1_000 });
      if (taken.ok) [this.#epoch, this.#renewedMs] = [taken.value.leaseEpoch, nowMs];
      return taken.ok;
    }
    const renewed = await this.#locks.renewLease({ name, leaseEpoch: this.#epoch }, { timeoutMs: 1_000 });
    if (!renewed.ok) return false;
    this.#renewedMs = nowMs;
    for (const { held } of this.#own) held.untilMs = nowMs + termMs - marginMs;
    return true;
  }

  #fallSilent(): void {
    for (const { held } of this.#own) held.endedMs = Math.min(held.endedMs, this.#sim.nowMs);
    this.#own = [];
    this.#epoch = undefined;
  }

  async #open(file: string): Promise<void> {
    const sentMs = this.#sim.nowMs;
    const sharesAll = this.#prng.chance(0.6);
    const rights = { access: all, shareMode: sharesAll ? all : none, deleteOnClose: this.#prng.chance(0.3), client: this.#name };
    const session = { session: this.#name, sessionEpoch: this.#epoch ?? 0n };
    const opened = await this.#files.open({ account: this.#account, share, path: file, ...session, ...rights }, this.#options);
    this.#count(`open ${opened.ok ? "done" : (opened.failure.details?.["x-ms-error-code"] ?? "unknown")}`);
    if (!opened.ok) return;
    const call = { file, sentMs, answeredMs: this.#sim.nowMs };
    const untilMs = this.#renewedMs + termMs - marginMs;
    const id = opened.value.handle.split("/")[2] ?? "";
    const held = { ...call, id, gateway: this.#name, sharesAll, untilMs, endedMs: Number.POSITIVE_INFINITY };
    this.#judge.opened(held);
    this.#own.push({ handle: opened.value.handle, held });
  }

  async #use({ handle, held }: Own): Promise<void> {
    const sentMs = this.#sim.nowMs;
    const payload = Uint8Array.of(this.#prng.below(256));
    const written = await this.#files.write({ account: this.#account, handle, startBytes: 0n, payload }, this.#options);
    const code = written.ok ? "done" : (written.failure.details?.["x-ms-error-code"] ?? "unknown");
    this.#count(`use ${code}`);
    if (code !== "ResourceNotFound") return;
    this.#judge.lost(held, { file: held.file, sentMs, answeredMs: this.#sim.nowMs });
    this.#forget(handle);
  }

  async #mark({ handle }: Own): Promise<void> {
    const deletePending = this.#prng.chance(0.5);
    const marked = await this.#files.setDisposition({ account: this.#account, handle, deletePending }, this.#options);
    this.#count(`mark ${marked.ok ? "done" : "refused"}`);
  }

  async #close({ handle, held }: Own): Promise<void> {
    held.endedMs = this.#sim.nowMs;
    this.#forget(handle);
    const closed = await this.#files.close({ account: this.#account, handle }, this.#options);
    this.#count(`close ${closed.ok ? "done" : "unknown"}`);
  }

  #forget(handle: string): void {
    this.#own = this.#own.filter((own) => own.handle !== handle);
  }
}
