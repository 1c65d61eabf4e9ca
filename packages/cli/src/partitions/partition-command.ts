/** `stamp partition list|split|merge|move|checkpoint|collect`: what the partition manager does by itself, by hand. */
import { type Failure, type FailureReason, fromHex, type Outcome } from "@stamp/base";
import { type StampInspector, timesText } from "@stamp/cluster";
import { partitionStart } from "@stamp/objects";
import { type StorageCounts, storageRatios } from "@stamp/range-partition";
import { fromWire, type PartitionInfo, PartitionManager, type PartitionStorage, type PartitionsChanged, Status } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError } from "../context.ts";
import { bytesText, table } from "../print.ts";
import { type TellProgress, withProgress } from "../progress.ts";
import { inspect, make as makeBelow, type Transport, tell } from "../running.ts";
import { loadCells, loadHeads, rangeTable } from "../status/status.ts";
import { topLevel } from "../top-level.ts";
import { kindOf, NotExpected } from "../values.ts";

const changeTimeoutMs = 120_000;
const collectTimeoutMs = 3_600_000;
const askEveryMs = 1_000;
const askTimeoutMs = 1_000;

type Manager = Parameters<Parameters<typeof asked>[1]>[0];

export function addPartition(program: Command): void {
  const partition = topLevel(program, "partition");
  const make = (name: string, about: string): Command => makeBelow(partition, name, about);

  make("list", "all ranges, who serves them, their load, and what their checkpoints, caches and filters did since they were loaded").action(
    async (_options, command: Command) => {
      const [ranges, held] = await inspect(command, async (inspector) => [await inspector.ranges(), await inspector.held()] as const);
      const told = ranges.map((range) => ({ ...range, held: heldOf(held.get(range.rangeId)) }));
      tell(command, told, () => {
        const busiest = told.toSorted((a, b) => requestsOf(b.held) - requestsOf(a.held)).slice(0, figuresShownMax);
        // In the order of the list, where it is whole.
        const figures = told.length > figuresShownMax ? busiest : told;
        const less = told.length - figures.length;
        const more = less > 0 ? `\n\n… ${less} ranges that are asked less: their figures are in --json` : "";
        return `${rangeTable({ ranges })}\n\n${loadTable(figures)}\n\n${storageTable(figures)}${more}`;
      });
    },
  );
  make("split <range>", "make two of one: where the load, or else the bytes, are divided evenly")
    .option(
      "--at-key <hex>",
      "at this key instead: the first of the upper range, in hexadecimal (docs/formats/key.md; `partition list --json` shows such keys)",
      atKeyKind,
    )
    .action((rangeId: string, options: { atKey?: string }, command: Command) => {
      const atKey = options.atKey === undefined ? undefined : splitKeyOf(options.atKey);
      return changed(command, (manager) =>
        manager.splitPartition(atKey ? { rangeId, atKey } : { rangeId }, { timeoutMs: changeTimeoutMs }),
      );
    });
  make("merge <range>", "make one of a range and its neighbour above; that one is moved to its server first").action(
    (rangeId: string, _options, command: Command) =>
      changed(command, (manager) => manager.mergePartition({ rangeId }, { timeoutMs: changeTimeoutMs })),
  );
  make("move <range> [server]", "to another partition server; without one, to the one that serves least").action(
    (rangeId: string, server: string | undefined, _options, command: Command) =>
      changed(command, (manager) => manager.movePartition({ rangeId, server: server ?? "" }, { timeoutMs: changeTimeoutMs })),
  );
  make("checkpoint <range>", "write out what is in memory, so that the next load has no log to replay").action(
    async (rangeId: string, _options, command: Command) => {
      await asked(command, (manager) => manager.checkpointRange({ rangeId }, { timeoutMs: changeTimeoutMs }));
      tell(command, { rangeId }, () => `${rangeId}: everything is in checkpoints`);
    },
  );
  addCollect(make);
}

/** Ranges whose figures are shown to people; of more the busiest. */
const figuresShownMax = 100;

const requestsOf = (held: PartitionInfo | undefined): number =>
  (held?.load?.readsPerSecond ?? 0) + (held?.load?.writesPerSecond ?? 0) + (held?.load?.throttledPerSecond ?? 0);

const heldOf = (info: PartitionInfo | undefined) =>
  info && { ...info, ratios: info.storage === undefined ? {} : storageRatios(countsOf(info.storage)) };

const countsOf = ({ $typeName: _, $unknown: __, ...counts }: PartitionStorage): StorageCounts =>
  Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, fromWire(value)])) as unknown as StorageCounts;

type Told = readonly { readonly rangeId: string; readonly held: ReturnType<typeof heldOf> }[];

/** Returns the load of each range over the last 10 s. Reads of blob data do not pass the server. */
function loadTable(ranges: Told): string {
  return table(
    ["RANGE", ...loadHeads, "ROW BYTES"],
    ranges.flatMap(({ rangeId, held }) =>
      held?.load ? [[rangeId, ...loadCells(held.load), bytesText(held.memoryTableBytes + held.checkpointBytes)]] : [],
    ),
  );
}

function storageTable(ranges: Told): string {
  const percent = (share: number | undefined): string => (share === undefined ? "-" : `${(share * 100).toFixed(2)}%`);
  return table(
    ["RANGE", "IN MEMORY", "CHECKPOINTS", "BYTES", "ROW CACHE", "INDEX CACHE", "BLOOM FALSE", "MET PER READ", "WRITE AMPLIFICATION"],
    ranges.flatMap(({ rangeId, held }) => {
      if (!held) return [];
      const { rowCacheHitRate, indexCacheHitRate, bloomFalsePositiveRate, checkpointsPerRead, writeAmplification } = held.ratios;
      return [
        [
          rangeId,
          bytesText(held.memoryTableBytes),
          held.checkpointCount,
          bytesText(held.checkpointBytes),
          percent(rowCacheHitRate),
          percent(indexCacheHitRate),
          percent(bloomFalsePositiveRate),
          checkpointsPerRead?.toFixed(2) ?? "-",
          writeAmplification?.toFixed(2) ?? "-",
        ],
      ];
    }),
  );
}

function addCollect(make: (name: string, about: string) => Command): void {
  make(
    "collect <range>",
    "give back now what nothing refers to: blob data, and what is inside deleted containers, tables and queues",
  ).action(async (rangeId: string, _options, command: Command) => {
    const about = {
      what: `${rangeId} is being collected`,
      afterwards: `The server goes on collecting ${rangeId}, and every range again by itself. What it gave back stands in its log, "range collected".`,
    };
    const collected = await withProgress(about, (tellProgress) =>
      inspect(command, async (inspector, transport) => {
        const asking = tellCollecting(inspector, transport, rangeId, tellProgress);
        try {
          const manager = managerAt(transport, await inspector.leader("partition-manager"));
          return answered(await manager.collectRange({ rangeId }, { timeoutMs: collectTimeoutMs }));
        } finally {
          asking();
        }
      }),
    );
    const { rows, rowsDeleted, extents, extentsDropped, extentsRewritten, bytesRewritten } = collected;
    tell(
      command,
      collected,
      () =>
        `${rangeId}: ${rows} rows looked at, ${rowsDeleted} deleted; ${extentsDropped} of ${extents} full extents of blob data given back` +
        (extentsRewritten > 0 ? `; ${extentsRewritten} were mostly dead, ${bytesText(bytesRewritten)} of them were copied` : ""),
    );
  });
}

/** Asks the server of a range for its progress again and again. Returns a function that ends it. */
function tellCollecting(inspector: StampInspector, transport: Transport, rangeId: string, tellProgress: TellProgress): () => void {
  const ask = async (): Promise<void> => {
    const { serverAddress = "" } = (await inspector.ranges()).find((range) => range.rangeId === rangeId) ?? {};
    if (serverAddress === "") return;
    const answer = await transport.client(serverAddress, Status).getStatus({}, { timeoutMs: askTimeoutMs });
    const { range, step, rows = 0 } = (answer.ok ? (answer.value.facts?.collecting as CollectingFacts | undefined) : undefined) ?? {};
    if (range === undefined) return;
    if (range !== rangeId) tellProgress(`its server collects ${range} now`);
    else
      tellProgress(step === "rewrite" ? `${rows} rows looked at; what lives in mostly dead extents is copied` : `${rows} rows looked at`);
  };
  const timer = setInterval(() => void ask().catch(() => {}), askEveryMs);
  return () => clearInterval(timer);
}

/** Facts of the pass that a partition server makes now. */
interface CollectingFacts {
  readonly range?: string;
  readonly step?: "scan" | "rewrite";
  readonly rows?: number;
}

const atKeyKind = kindOf("0502616363740000051501027400150702700000", (text) => void splitKeyOf(text));

/** Returns the key of `--at-key`. Throws NotExpected for a key that no row of any table could begin with. */
export function splitKeyOf(text: string): Uint8Array<ArrayBuffer> {
  const key = fromHex(text);
  if (key && partitionStart(key)) return Uint8Array.from(key);
  throw new NotExpected(
    "an AccountName and a PartitionName as docs/formats/key.md encodes them, in hexadecimal; without --at-key the server finds one",
  );
}

const asked = <T>(command: Command, work: (manager: ReturnType<typeof managerAt>) => Promise<Outcome<T>>): Promise<T> =>
  inspect(command, async (inspector, transport) => answered(await work(managerAt(transport, await inspector.leader("partition-manager")))));

function answered<T>(answer: Outcome<T>): T {
  if (answer.ok) return answer.value;
  throw new CommandError(`${answer.failure.message}${whatNext(answer.failure)}`);
}

/** Failures after which the asked manager is gone or leads no more: what it began is recorded. */
const lost: ReadonlySet<FailureReason> = new Set(["connectFailed", "connectionLost", "timeout", "notLeader", "stopping"]);
/** Failures of a range that is on its way to another server. */
const between: ReadonlySet<FailureReason> = new Set(["wrongPartition", "partitionLoading", "leaseLost"]);

export const whatNext = ({ code, reason }: Failure): string => {
  if (code === "notFound") return "";
  if (lost.has(reason)) return ". The next leader finishes or undoes what was begun; see: ./stamp partition list";
  return between.has(reason) ? ". Try again when it is served; see: ./stamp partition list" : "";
};

const managerAt = (transport: Transport, address: string) => transport.client(address, PartitionManager);

async function changed(command: Command, work: (manager: Manager) => Promise<Outcome<PartitionsChanged>>): Promise<void> {
  const { ranges, heldMs, mapVersion, times } = await asked(command, work);
  tell(command, { ranges, heldMs, mapVersion, times }, () =>
    times ? `${rangeTable({ ranges })}\n${timesText(times)}` : rangeTable({ ranges }),
  );
}
