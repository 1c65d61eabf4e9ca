/**
 * `stamp bench geo`: what a copy at a second stamp costs the primary, and how far the copy lags behind at full load.
 *
 * Two stamps and a location service run on this machine. The primary's stamp has two accounts: `alone` has no copy, `copied` has one. The same
 * processes serve both, in turns: a turn of `copied` ends when its copy lacks nothing any more, so that a turn of `alone` pays for nothing.
 */
import { loadavg } from "node:os";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { BlobClient, TwoStamps } from "@stamp/drills";
import { type BenchCase, nameOf } from "../cases.ts";
import { combine, type Measurement, measure } from "../measure.ts";
import { type LagSample, sampleOf, summaryOf } from "./lag.ts";
import { type GeoRow, lineOf, writeGeoPage } from "./table.ts";

const usage = `./stamp bench geo [--seconds 8] [--rounds 3] [--cases "put 1 KiB;put 4 MiB"] [--json] [--write]
Put of 1 KiB (64 clients) and of 4 MiB (8 clients) to an account with a copy at a second stamp and to one without, in turns: throughput, processor
time, lag of the copy and backlog while clients write, and the time until the copy has everything. About 3 minutes.
--seconds: length of a turn; --rounds: turns of each account; --write: docs/measurements/geo.md`;

const clientsOf: Readonly<Record<string, number>> = { "put 1 KiB": 64, "put 4 MiB": 8 };
const main = resolve(import.meta.dirname, "../../../cli/src/main.ts");
const accounts = ["alone", "copied"] as const;
type AccountName = (typeof accounts)[number];

const completeMaxMs = 120_000;
const sampleEveryMs = 250;
/** The copy's stamp hears of Last Sync Time every 2 s. */
const toldEveryMs = 1_000;
/** Longest wait for the copy after a turn. */
const drainMaxMs = 60_000;

const pause = (ms: number): Promise<void> => new Promise((passed) => setTimeout(passed, ms));

interface Stage {
  readonly pids: ReadonlyMap<string, number>;
  readonly connectionStrings: Readonly<Record<AccountName, string>>;
  /** Addresses of `/metrics` of the primary's partition servers. */
  readonly senders: readonly string[];
  /** Asks the copy's stamp. */
  readonly copy: BlobClient;
}

export async function geo(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      seconds: { type: "string", default: "8" },
      rounds: { type: "string", default: "3" },
      cases: { type: "string", default: Object.keys(clientsOf).join(";") },
      json: { type: "boolean", default: false },
      write: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  const [seconds, rounds] = [Number(values.seconds), Number(values.rounds)];
  const chosen = values.cases.split(";").map((scenario): BenchCase => ({ scenario, clients: clientsOf[scenario] ?? 0 }));
  if (values.help || !(seconds > 0) || !(rounds >= 1) || chosen.some(({ clients }) => clients === 0)) {
    console.log(usage);
    process.exit(values.help ? 0 : 2);
  }
  const loadBefore = loadavg()[0] ?? 0;
  const stamps = await TwoStamps.start(main);
  const rows: GeoRow[] = [];
  try {
    const stage = await prepare(stamps);
    for (const one of chosen) for (const account of accounts) await turn(stage, account, one, 2);
    for (const one of chosen) {
      const row = await compare(stage, one, rounds, seconds);
      rows.push(row);
      if (!values.json) console.log(lineOf(row));
    }
    stage.copy.close();
  } finally {
    await stamps.close(false);
  }
  if (values.json) console.log(JSON.stringify(rows, null, 2));
  if (values.write) console.log(`wrote ${writeGeoPage(rows, { seconds, rounds, loadBefore, loadAfter: loadavg()[0] ?? 0 })}`);
  if (rows.some(({ alone, copied }) => alone.failed + copied.failed > 0)) process.exitCode = 1;
}

async function prepare(stamps: TwoStamps): Promise<Stage> {
  const keyOf = async (...command: string[]): Promise<string> => {
    const { keys } = await stamps.json<{ keys: readonly string[] }>("account", "create", ...command, "--location", "north");
    return keys[0] ?? "";
  };
  const keys = { alone: await keyOf("alone"), copied: await keyOf("copied", "--geo", "south") };
  const isComplete = ({ seeded, pendingOperations }: { readonly seeded: boolean; readonly pendingOperations: number | null }): boolean =>
    seeded && pendingOperations === 0;
  await stamps.untilCopy("a complete copy", completeMaxMs, isComplete, "copied");
  const port = stamps.portOf("north-1");
  const textOf = (account: AccountName): string => {
    const endpoints = ["Blob", "Queue", "Table"].map((service, at) => `${service}Endpoint=http://127.0.0.1:${port + at}/${account}`);
    return [`DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${keys[account]}`, ...endpoints, ""].join(";");
  };
  const [north, south] = [await stamps.status("north-1"), await stamps.status("south-1")];
  const pids = new Map<string, number>();
  for (const [stamp, { processes }] of [["north", north] as const, ["south", south] as const])
    for (const { name, pid } of processes) if (pid !== null) pids.set(`${stamp} ${name}`, pid);
  const endpoint = `http://127.0.0.1:${stamps.portOf("south-1")}/copied-secondary`;
  return {
    pids,
    connectionStrings: { alone: textOf("alone"), copied: textOf("copied") },
    senders: north.processes.filter(({ role }) => role === "partition-server").map(({ http }) => `http://${http}/metrics`),
    copy: new BlobClient({ endpoint, account: "copied", key: keys.copied, timeoutMs: 5_000 }),
  };
}

/** Returns the time since the Last Sync Time that the copy's stamp tells, in milliseconds; undefined if it tells none. */
async function toldLag(copy: BlobClient): Promise<number | undefined> {
  const answer = await copy.call("GET", "/?restype=service&comp=stats", {});
  const told = answer.kind === "answer" ? /<LastSyncTime>([^<]+)</.exec(answer.body.toString("utf8"))?.[1] : undefined;
  return told === undefined ? undefined : Date.now() - Date.parse(told);
}

async function look({ senders, copy }: Stage, asksCopy: boolean): Promise<LagSample> {
  const texts = await Promise.all(senders.map(async (address) => (await fetch(address)).text()));
  return sampleOf(texts.join("\n"), performance.now(), asksCopy ? await toldLag(copy) : undefined);
}

interface Turn {
  readonly measured: Measurement;
  /** Looks while clients wrote. */
  readonly samples: readonly LagSample[];
  /** Time between the end of the load and the copy having everything, in milliseconds. */
  readonly drainMs: number;
}

async function turn(stage: Stage, account: AccountName, one: BenchCase, seconds: number): Promise<Turn> {
  const samples: LagSample[] = [];
  let isOver = false;
  const looking = (async () => {
    for (let toldMs = 0; !isOver && account === "copied"; await pause(sampleEveryMs)) {
      const asksCopy = performance.now() - toldMs >= toldEveryMs;
      if (asksCopy) toldMs = performance.now();
      samples.push(await look(stage, asksCopy));
    }
  })();
  const target = { connectionString: stage.connectionStrings[account], pids: stage.pids };
  const measured = await measure(target, one, seconds, "bench").finally(() => {
    isOver = true;
  });
  await looking;
  const endMs = performance.now();
  while (account === "copied") {
    const { pendingCommits, isSeeding } = await look(stage, false);
    if (pendingCommits === 0 && !isSeeding) break;
    if (performance.now() - endMs > drainMaxMs)
      throw new Error(`${nameOf(one)}: ${drainMaxMs / 1_000} s after the load the copy lacks ${pendingCommits} commits`);
    await pause(20);
  }
  return { measured, samples, drainMs: performance.now() - endMs };
}

/** Rounds of one case; who begins changes from round to round. */
async function compare(stage: Stage, one: BenchCase, rounds: number, seconds: number): Promise<GeoRow> {
  const turns: Record<AccountName, Turn[]> = { alone: [], copied: [] };
  for (let round = 0; round < rounds; round++)
    for (const account of round % 2 === 0 ? accounts : accounts.toReversed()) turns[account].push(await turn(stage, account, one, seconds));
  const rates = (of: AccountName): number[] => turns[of].map(({ measured }) => measured.operations / measured.seconds);
  return {
    case: nameOf(one),
    alone: combine(turns.alone.map(({ measured }) => measured)),
    copied: combine(turns.copied.map(({ measured }) => measured)),
    ratios: rates("copied").map((rate, round) => rate / (rates("alone")[round] ?? Number.NaN)),
    lag: summaryOf(turns.copied.map(({ samples }) => samples)),
    drainMs: turns.copied.map(({ drainMs }) => drainMs),
  };
}
