/**
 * Reads of replicated and coded extents in turns, in one run, so that what the machine does meanwhile hits all of them: with every node up, with
 * one slow, with one dead. Coded extents are read by two clients: with hedged reads (reconstruction) and without.
 */
import type { Place, StreamClient } from "@stamp/stream-client";
import { pause } from "../streams/bench.ts";
import { blockBytes, type Stage } from "./stage.ts";

const kibibyte = 1_024;
const sizes = [
  { name: "64 KiB", bytes: 64 * kibibyte, reads: 150 },
  { name: "4 MiB", bytes: blockBytes, reads: 30 },
] as const;
const readTimeoutMs = 20_000;
const noticedMs = 5_000;
/** A slow node: stopped for most of the time, never for long enough to be down. */
const stoppedMs = 450;
const runsMs = 50;

interface Kind {
  readonly name: string;
  readonly client: StreamClient;
  readonly places: readonly Place[];
}

export interface ReadOptions {
  readonly rounds: number;
  /** Node that is slow, then dies. */
  readonly victim: string;
}

/** Prints a row for each condition and size. */
export async function measureReads(
  stage: Stage,
  replicated: readonly Place[],
  coded: readonly Place[],
  options: ReadOptions,
): Promise<void> {
  const { rounds, victim } = options;
  // A client remembers which nodes failed: each condition has clients of its own, and a round that is not counted.
  const measure = async (condition: string): Promise<void> => {
    const [hedging, waiting] = [stage.client(), stage.client(false)];
    const kinds = [
      { name: "three replicas", client: hedging, places: replicated },
      { name: "coded", client: hedging, places: coded },
      { name: "coded, not hedged", client: waiting, places: coded },
    ];
    await oneRound(kinds);
    print(condition, await inRounds(kinds, rounds));
  };
  console.log("\n| reads, p50 and p99 in ms | size | three replicas | coded | coded, not hedged |\n|---|---|---|---|---|");
  await measure("every node is up");
  const slow = beginSlowness(stage, victim);
  await measure(`${victim} is slow`);
  await slow();
  await stage.target.ask({ do: "hold", name: victim });
  await pause(noticedMs);
  await measure(`${victim} is dead`);
  await stage.target.ask({ do: "start", name: victim });
  while (!(await stage.target.status()).ready) await pause(250);
}

/** Times in ms by size and kind. */
type Times = ReadonlyMap<string, number[]>;

async function inRounds(kinds: readonly Kind[], rounds: number): Promise<Times> {
  const all = new Map<string, number[]>();
  for (let round = 0; round < rounds; round++) {
    for (const [key, times] of await oneRound(kinds)) all.set(key, [...(all.get(key) ?? []), ...times]);
  }
  return all;
}

const keyOf = (size: string, kind: string): string => `${size} of ${kind}`;

async function oneRound(kinds: readonly Kind[]): Promise<Times> {
  const times = new Map<string, number[]>();
  for (const { name, bytes, reads } of sizes) {
    for (const kind of kinds) times.set(keyOf(name, kind.name), await readSome(kind, bytes, reads));
  }
  return times;
}

/** One reader, one read after another, at random places. */
async function readSome({ client, places }: Kind, bytes: number, reads: number): Promise<number[]> {
  const timesMs: number[] = [];
  for (let read = 0; read < reads; read++) {
    const place = places[Math.floor(Math.random() * places.length)] as Place;
    const chunks = Math.floor((place.lengthBytes - bytes) / (64 * kibibyte)) + 1;
    const offsetBytes = place.offsetBytes + Math.floor(Math.random() * chunks) * 64 * kibibyte;
    const startMs = performance.now();
    const got = await client.reader.read({ extentId: place.extentId, offsetBytes, lengthBytes: bytes }, { timeoutMs: readTimeoutMs });
    if (!got.ok) throw new Error(`a read failed: ${got.failure.message}`);
    timesMs.push(performance.now() - startMs);
  }
  return timesMs;
}

function print(condition: string, times: Times): void {
  for (const { name } of sizes) {
    const cells = ["three replicas", "coded", "coded, not hedged"].map((kind) => {
      const sorted = (times.get(keyOf(name, kind)) ?? []).toSorted((a, b) => a - b);
      const at = (part: number): string => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(1);
      return `${at(0.5)}, ${at(0.99)}`;
    });
    console.log(`| ${condition} | ${name} | ${cells.join(" | ")} |`);
  }
}

/** Stops and continues a process until the answer is called. */
function beginSlowness({ target }: Stage, name: string): () => Promise<void> {
  let running = true;
  const turns = async (): Promise<void> => {
    while (running) {
      await target.ask({ do: "signal", name, signal: "SIGSTOP" });
      await pause(stoppedMs);
      await target.ask({ do: "signal", name, signal: "SIGCONT" });
      await pause(runsMs);
    }
  };
  const done = turns();
  // An interrupted run fails elsewhere first, and still removes its data.
  done.catch(() => {});
  return () => {
    running = false;
    return done;
  };
}
