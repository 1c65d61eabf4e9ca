/**
 * A hundred workers that wait for one signal (article "Synchronizing multiple nodes"): by polling a flag, by listening, by both.
 *
 *   node examples/unleash.ts [--workers 100]
 *
 * SIGNALS names the gRPC addresses of the front-ends (default 127.0.0.1:10107, as `npm start` has it). Half of the workers of the last round
 * start after the signal: they see the flag.
 */
import { setTimeout as delay } from "node:timers/promises";
import { BlobGlobalFlag, GrpcSignalChannel, ListeningRelease, PollingRelease, Release } from "@stamp/coordination";
import { accountKey, accountName, container, option } from "./account.ts";

const workers = option("--workers", 100);
const run = Date.now();
const channel = new GrpcSignalChannel({
  addresses: (process.env.SIGNALS ?? "127.0.0.1:10107").split(","),
  account: accountName(),
  accountKey: accountKey(),
  onError: (error) => console.error(`signals: ${error instanceof Error ? error.message : error}`),
});
const flagOf = (name: string): BlobGlobalFlag => new BlobGlobalFlag(container("globalflags"), `start-${name}-${run}`);

/** Starts `early` workers, releases them, starts the others, and tells how long the slowest one waited. */
async function round(name: string, early: number, wait: () => Promise<void>, release: () => Promise<void>): Promise<void> {
  const running: number[] = [];
  const worker = async (): Promise<void> => {
    await wait();
    running.push(performance.now());
  };
  const waiting = Array.from({ length: early }, worker);
  await delay(1_000);
  const releasedMs = performance.now();
  await release();
  const late = Array.from({ length: workers - early }, worker);
  await Promise.all([...waiting, ...late]);
  const last = Math.max(...running) - releasedMs;
  console.log(`${name}: ${workers} workers run, the last one ${Math.round(last)} ms after the release (${late.length} started after it)`);
}

const polled = flagOf("polling");
const polling = new PollingRelease(polled, { intervalMs: 2_500 });
await round(
  "polling",
  workers,
  () => polling.wait({ deadlineMs: 60_000 }),
  () => polled.set(),
);

const topic = `unleash-${run}`;
const listening = new ListeningRelease(channel, topic);
await round(
  "listening",
  workers,
  () => listening.wait({ deadlineMs: 60_000 }),
  async () => {
    console.log(`listening: the signal reached ${await channel.publish(topic)} listeners`);
  },
);

const both = new Release(flagOf("both"), channel);
await round(
  "both",
  workers / 2,
  () => both.wait({ deadlineMs: 60_000 }),
  () => both.release(),
);
channel.close();
