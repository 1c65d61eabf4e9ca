/**
 * Several clients write to the same three blobs at once, each without a pause: they append records to a log, some only at the end that they
 * know, write pages of their own, and put blocks. Meanwhile they read, faults come, and the range is split, merged and moved. Then everything
 * heals, and what every client saw must fit what is there (writers-judge.ts). Garbage collectors rewrite the rows of pages beside the writers.
 */
import { type Prng, utf8 } from "@stamp/base";
import { until } from "@stamp/histories";
import { routeOf } from "@stamp/objects";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import { HttpClient, type Received } from "./clients/http-client.ts";
import { simulatedCluster } from "./cluster.ts";
import { Faults } from "./faults/faults.ts";
import { collectingOf } from "./faults/garbage.ts";
import { WritersJudge } from "./judges/writers-judge.ts";
import { stageOf } from "./run/stage.ts";
import type { Workload } from "./run/workload.ts";

const clientCount = 6;
const operationsPerClient = 60;
const pauseMaxMs = 150;
const workMs = (operationsPerClient * pauseMaxMs) / 2;
const readyWithinMs = 60_000;
const healedWithinMs = 120_000;
const container = "shared";
const pageBytes = 512;
const paddingMax = 40;
const incarnationsMax = 20;

export const writerWorkload: Workload = async (sim, tally, focus) => {
  const cluster = simulatedCluster(sim, collectingOf(sim).options);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const stage = stageOf(sim, tally);
  const key = (prng: Prng): Uint8Array => {
    const name = { account: cluster.account, container, containerIncarnation: 1 + prng.below(incarnationsMax) };
    return routeOf(sim.rules, { case: "getBlob", value: { name: { ...name, blob: prng.pick(["blocks", "log", "pages"]) } } }).key;
  };
  const reshapes = { cluster, table: "Blob", key, weight: 3 } as const;
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs, reshapes });
  tally.faults = faults.counts;
  const judge = new WritersJudge();
  const writers = Array.from({ length: clientCount }, (_, i) => {
    const name = `client-${i + 1}`;
    return new Writer(sim, new HttpClient(sim, sim.world(name), name, cluster, "blob"), i, judge, stage.count);
  });
  const first = writers[0] as Writer;
  const bound = { withinMs: healedWithinMs, pauseMs: 500 };
  await until(stage, "the blobs are made", bound, () => first.makes());
  faults.start();
  await Promise.all(writers.map((writer) => writer.work()));
  await faults.heal();
  await until(stage, "the log is read", bound, () => first.readsLog());
  await until(stage, "the blocks are listed", bound, () => first.listsBlocks());
  for (let page = 0; page < clientCount; page++) await until(stage, `page ${page} is read`, bound, () => first.readsPage(page));
  const wrong = judge.checkLog(first.log);
  if (wrong !== undefined) throw new BrokenPromise(wrong);
};

class Writer {
  readonly #sim: Simulation;
  readonly #http: HttpClient;
  readonly #number: number;
  readonly #judge: WritersJudge;
  readonly #count: (what: string) => void;
  readonly #prng: Prng;
  #written = 0;
  /** Content of the log when it was read last. */
  log = "";
  /** A length that the log has had. */
  #length = 0;

  constructor(sim: Simulation, http: HttpClient, number: number, judge: WritersJudge, count: (what: string) => void) {
    this.#sim = sim;
    this.#http = http;
    this.#number = number;
    this.#judge = judge;
    this.#count = count;
    this.#prng = sim.prng.fork();
  }

  async makes(): Promise<boolean> {
    const made = await this.#ask("create", "PUT", "?restype=container");
    if (made === undefined || (made.status !== 201 && made.status !== 409)) return false;
    const absent = { "if-none-match": "*" };
    const size = String(clientCount * pageBytes);
    const log = await this.#ask("create", "PUT", "/log", { "x-ms-blob-type": "AppendBlob", ...absent });
    const pages = await this.#ask("create", "PUT", "/pages", { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": size, ...absent });
    return [log, pages].every((one) => one?.status === 201 || one?.status === 409);
  }

  async work(): Promise<void> {
    for (let i = 0; i < operationsPerClient; i++) {
      await this.#sim.sleep(this.#prng.float() * pauseMaxMs);
      const dice = this.#prng.below(100);
      if (dice < 35) await this.#append();
      else if (dice < 60) await this.#writePage();
      else if (dice < 80) await this.#putBlock();
      else if (dice < 90) await this.readsLog();
      else if (dice < 96) await this.readsPage(this.#prng.below(clientCount));
      else await this.listsBlocks();
    }
  }

  async #append(): Promise<void> {
    const record = `[${this.#number}.${++this.#written}${".".repeat(this.#prng.below(paddingMax))}]`;
    const position = this.#prng.chance(0.5) ? this.#length : undefined;
    const headers: Record<string, string> = position === undefined ? {} : { "x-ms-blob-condition-appendpos": String(position) };
    const sentMs = this.#sim.nowMs;
    const answer = await this.#ask("append", "PUT", "/log?comp=appendblock", headers, record);
    const answeredMs = this.#sim.nowMs;
    if (answer?.status === 201) {
      const offset = Number(answer.headers["x-ms-blob-append-offset"]);
      this.#length = offset + record.length;
      this.#judge.appended({ record, sentMs, answeredMs, offset });
    } else if (answer?.status === 412 && position !== undefined) {
      this.#judge.refusedBehind({ position, sentMs, answeredMs });
      await this.readsLog();
    } else this.#judge.appended({ record, sentMs, answeredMs: undefined, offset: undefined });
  }

  /** Each writer has a page of its own; all of them are in one row. */
  async #writePage(): Promise<void> {
    const value = ++this.#written;
    const start = this.#number * pageBytes;
    const headers = { "x-ms-page-write": "update", "x-ms-range": `bytes=${start}-${start + pageBytes - 1}` };
    const acknowledged = this.#judge.writesPage(String(this.#number), { value, sentMs: this.#sim.nowMs });
    const answer = await this.#ask("page", "PUT", "/pages?comp=page", headers, String(value).padEnd(pageBytes, "."));
    if (answer?.status === 201) acknowledged(this.#sim.nowMs);
  }

  async #putBlock(): Promise<void> {
    // Eight digits are Base64 as well.
    const id = `${this.#number}${String(++this.#written).padStart(7, "0")}`;
    const acknowledged = this.#judge.putsBlock({ id, sentMs: this.#sim.nowMs });
    const answer = await this.#ask("block", "PUT", `/blocks?comp=block&blockid=${id}`, {}, "block");
    if (answer?.status === 201) acknowledged(this.#sim.nowMs);
  }

  /** True if the stamp answered. */
  async readsLog(): Promise<boolean> {
    const sentMs = this.#sim.nowMs;
    const read = await this.#ask("read", "GET", "/log");
    if (read?.status !== 200 || read.short) return false;
    this.log = new TextDecoder().decode(read.body);
    this.#length = Math.max(this.#length, this.log.length);
    this.#judge.readLog({ sentMs, answeredMs: this.#sim.nowMs, content: this.log });
    return true;
  }

  async readsPage(page: number): Promise<boolean> {
    const sentMs = this.#sim.nowMs;
    const range = `bytes=${page * pageBytes}-${(page + 1) * pageBytes - 1}`;
    const read = await this.#ask("read page", "GET", "/pages", { "x-ms-range": range });
    if (read?.status !== 206 || read.short) return false;
    const value = Number.parseInt(new TextDecoder().decode(read.body), 10) || 0;
    this.#keeps(this.#judge.readPage(String(page), { sentMs, answeredMs: this.#sim.nowMs, value }));
    return true;
  }

  async listsBlocks(): Promise<boolean> {
    const sentMs = this.#sim.nowMs;
    const listed = await this.#ask("list", "GET", "/blocks?comp=blocklist&blocklisttype=uncommitted");
    const none = listed?.status === 404;
    if (!none && (listed?.status !== 200 || listed.short)) return false;
    const ids = none
      ? []
      : [...new TextDecoder().decode(listed.body).matchAll(/<Name>([^<]*)<\/Name>/g)].map((match) => match[1] as string);
    this.#keeps(this.#judge.listBlocks({ sentMs, answeredMs: this.#sim.nowMs, ids }));
    return true;
  }

  #keeps(wrong: string | undefined): void {
    if (wrong !== undefined) throw new BrokenPromise(wrong);
  }

  async #ask(
    what: string,
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    content = "",
  ): Promise<Received | undefined> {
    const received = await this.#http.request(method, `/${container}${path}`, headers, utf8(content));
    this.#count(`${what} ${received === undefined ? "unknown" : received.status}`);
    return received;
  }
}
