/**
 * `stamp bench list`: a container with many blobs, put by ordinary requests, and what its pages cost from the first to the last: flat ones of
 * 5,000, and hierarchical ones of 100 prefixes, each of which stands for many blobs that nobody should read. For every page: its time, and
 * what the partition servers read for it (rows and their bytes, and blocks of checkpoints that were looked into).
 *
 *     45% of the blobs   file-0000000 …        in no folder
 *     10%                many/0000000 …        one large folder
 *     45%                set/00000/00 …        100 in each of many folders
 */
import { parseArgs } from "node:util";
import { BlobClient, type DrillTarget, startOwn } from "@stamp/drills";
import type { StorageCounts } from "@stamp/range-partition";
import { Status } from "@stamp/wire";

const usage = `pnpm bench list [--blobs 1000000] [--connections 64] [--set key=value]… [--keep]
--set: of the cluster's configuration, e.g. --set partitionServers=2`;

const container = "many";
const perFolder = 100;
const body = new Uint8Array(16).fill(7);
const sayEveryMs = 10_000;
/** A pass of the garbage collector reads rows too. */
const noCollector = { "partition-server": { collectEveryMs: 86_400_000 } };

export async function list(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      blobs: { type: "string", default: "1000000" },
      connections: { type: "string", default: "64" },
      set: { type: "string", multiple: true, default: [] },
      keep: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const [blobs, connections] = [values.blobs, values.connections].map(Number);
  if (values.help || !blobs || !connections) {
    console.log(usage);
    return;
  }
  const flags = Object.fromEntries(values.set.map((one) => [one.slice(0, one.indexOf("=")), one.slice(one.indexOf("=") + 1)]));
  const target = await startOwn({ roles: noCollector, ...flags }, values.keep);
  const client = BlobClient.fromConnectionString(target.connectionString, { connectionsMax: connections, timeoutMs: 60_000 });
  try {
    await fill(client, blobs, connections);
    const lister = new Lister(target, client);
    await lister.warmUp();
    report("flat, 5,000 a page", await lister.pages("maxresults=5000"), blobs);
    const folders = Math.ceil((blobs - countOf(blobs, 0.55)) / perFolder);
    report("prefixes of 100 blobs each, 100 a page", await lister.pages("maxresults=100&prefix=set/&delimiter=/"), folders);
    report(
      `one prefix of ${countOf(blobs, 0.55) - countOf(blobs, 0.45)} blobs`,
      await lister.pages("maxresults=100&prefix=m&delimiter=/"),
      1,
    );
    if (values.keep) console.log(`\nkept: ${(await target.status()).dataDir}`);
  } finally {
    client.close();
    await target.close();
  }
}

const countOf = (blobs: number, part: number): number => Math.floor(blobs * part);

function nameOf(blobs: number, at: number): string {
  if (at < countOf(blobs, 0.45)) return `file-${digits(at, 7)}`;
  const inMany = at - countOf(blobs, 0.45);
  if (at < countOf(blobs, 0.55)) return `many/${digits(inMany, 7)}`;
  const inSets = at - countOf(blobs, 0.55);
  return `set/${digits(Math.floor(inSets / perFolder), 5)}/${digits(inSets % perFolder, 2)}`;
}

const digits = (number: number, width: number): string => String(number).padStart(width, "0");

async function fill(client: BlobClient, blobs: number, connections: number): Promise<void> {
  const made = await client.createContainer(container);
  if (made.kind !== "answer" || made.status !== 201) throw new Error(`no container: ${JSON.stringify(made).slice(0, 300)}`);
  const startMs = performance.now();
  let next = 0;
  let done = 0;
  let again = 0;
  let [saidMs, said] = [startMs, 0];
  const writer = async (): Promise<void> => {
    while (next < blobs) {
      const name = nameOf(blobs, next++);
      for (;;) {
        const put = await client.put(container, name, body);
        if (put.kind === "answer" && put.status === 201) break;
        if (put.kind === "answer" && put.status < 500) throw new Error(`${name}: ${put.status} ${put.body.toString("utf8").slice(0, 300)}`);
        again++;
        await pause(50);
      }
      done++;
      const nowMs = performance.now();
      if (nowMs - saidMs < sayEveryMs) continue;
      const perSecond = ((done - said) * 1_000) / (nowMs - saidMs);
      [saidMs, said] = [nowMs, done];
      console.log(`  ${done} blobs, ${perSecond.toFixed(0)}/s${again > 0 ? `, ${again} put again` : ""}`);
    }
  };
  await Promise.all(Array.from({ length: connections }, writer));
  const seconds = (performance.now() - startMs) / 1_000;
  console.log(`${blobs} blobs in ${seconds.toFixed(0)} s (${(blobs / seconds).toFixed(0)}/s), ${again} put again`);
}

interface ListedPage {
  readonly entries: number;
  readonly ms: number;
  readonly rows: number;
  readonly rowBytes: number;
  readonly blocks: number;
}

class Lister {
  readonly #target: DrillTarget;
  readonly #client: BlobClient;

  constructor(target: DrillTarget, client: BlobClient) {
    this.#target = target;
    this.#client = client;
  }

  /** Compiles what is hot. */
  async warmUp(): Promise<void> {
    for (let i = 0; i < 5; i++) await this.#page("maxresults=5000", "");
    for (let i = 0; i < 20; i++) await this.#page("maxresults=100&prefix=set/&delimiter=/", "");
  }

  /** Lists from the first page to the last. */
  async pages(query: string): Promise<readonly ListedPage[]> {
    const pages: ListedPage[] = [];
    let before = await this.#counts();
    for (let marker = ""; ; ) {
      const { ms, text } = await this.#page(query, marker);
      const after = await this.#counts();
      const entries = text.split("<Blob>").length - 1 + (text.split("<BlobPrefix>").length - 1);
      const blocks = after.rowCacheHits + after.rowCacheMisses - before.rowCacheHits - before.rowCacheMisses;
      const [rows, rowBytes] = [after.rowsScanned - before.rowsScanned, after.rowBytesScanned - before.rowBytesScanned];
      pages.push({ entries, ms, rows, rowBytes, blocks });
      before = after;
      marker = /<NextMarker>([^<]*)<\/NextMarker>/.exec(text)?.[1] ?? "";
      if (marker === "") return pages;
    }
  }

  async #page(query: string, marker: string): Promise<{ readonly ms: number; readonly text: string }> {
    const startMs = performance.now();
    const answer = await this.#client.call(
      "GET",
      `/${container}?restype=container&comp=list&${query}&marker=${encodeURIComponent(marker)}`,
      {},
    );
    const ms = performance.now() - startMs;
    if (answer.kind === "answer" && answer.status === 200) return { ms, text: answer.body.toString("utf8") };
    throw new Error(`a page: ${JSON.stringify(answer).slice(0, 300)}`);
  }

  /** Counts of all partition servers. */
  async #counts(): Promise<StorageCounts> {
    const { processes } = await this.#target.status();
    const sum: Record<string, number> = {};
    for (const { grpc } of processes.filter(({ role }) => role === "partition-server")) {
      const status = await this.#target.transport.client(grpc, Status).getStatus({}, { timeoutMs: 10_000 });
      const storage = (status.ok ? status.value.facts?.storage : undefined) as Record<string, number> | undefined;
      for (const [name, count] of Object.entries(storage ?? {})) sum[name] = (sum[name] ?? 0) + count;
    }
    return sum as unknown as StorageCounts;
  }
}

/** Five pages of the start, the middle and the end, and all together; medians. The last page, which is rarely full, is only in the totals. */
function report(what: string, pages: readonly ListedPage[], expected: number): void {
  const entries = pages.reduce((sum, page) => sum + page.entries, 0);
  console.log(`\n${what}: ${pages.length} pages, ${entries} entries${entries === expected ? "" : ` (${expected} EXPECTED)`}`);
  const full = pages.length > 1 ? pages.slice(0, -1) : pages;
  const middle = Math.max(0, Math.floor(full.length / 2) - 2);
  for (const [name, some] of [
    ["start", full.slice(0, 5)],
    ["middle", full.slice(middle, middle + 5)],
    ["end", full.slice(-5)],
    ["all", full],
  ] as const) {
    const of = (value: (page: ListedPage) => number): number => median(some.map(value));
    const read = `${of((page) => page.rows)} rows, ${(of((page) => page.rowBytes) / 1_024).toFixed(0)} KiB, ${of((page) => page.blocks)} blocks read`;
    console.log(`  ${name.padEnd(7)} ${of((page) => page.ms).toFixed(1)} ms a page of ${of((page) => page.entries)}: ${read}`);
  }
  console.log(`  slowest ${Math.max(...pages.map((page) => page.ms)).toFixed(1)} ms`);
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
