/**
 * `node tests/console/memory.ts MINUTES`: prints the memory of a console, in MiB, minute by minute, while a client writes, reads and deletes and
 * a page follows. Needs Chromium and Linux.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { BlobServiceClient } from "@azure/storage-blob";
import { ConsoleBench } from "./browser.ts";
import { consoleOf, mebibytesOf, secondsOf } from "./processes.ts";

const minuteMs = 60_000;
/** Pause between two rounds of the client. */
const pauseMs = 200;
const bytes = 64 * 1_024;
const kept = 100;
const minutes = Number(process.argv[2] ?? 60);

const say = (text: string): void => void process.stdout.write(`${text}\n`);

const bench = new ConsoleBench();
let rounds = 0;
let isOver = false;

/** One blob is written, read and, when it is old, deleted, again and again. */
async function work(connectionString: string): Promise<void> {
  const container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient("memory");
  await container.create();
  for (; !isOver; rounds++) {
    const blob = container.getBlockBlobClient(`blob-${rounds}`);
    await blob.upload(Buffer.alloc(bytes, rounds), bytes);
    await blob.downloadToBuffer();
    if (rounds >= kept) await container.deleteBlob(`blob-${rounds - kept}`);
    await sleep(pauseMs);
  }
}

try {
  await bench.up();
  const { page, origin } = await bench.open();
  await page.goto(`${origin}/#/topology`);
  const pid = consoleOf(bench.dataDir);
  const { connectionString } = await bench.ask({ do: "status" });
  const client = work(connectionString);
  for (let minute = 0; minute <= minutes; minute++) {
    const beforeS = secondsOf(pid);
    const startMs = performance.now();
    if (minute > 0) await Promise.race([sleep(minuteMs), client]);
    const share = (100_000 * (secondsOf(pid) - beforeS)) / Math.max(1, performance.now() - startMs);
    say(`${minute} min: ${mebibytesOf(pid).toFixed(0)} MiB, ${share.toFixed(1)}% of a processor, ${rounds} rounds of the client`);
  }
  isOver = true;
  await client;
} finally {
  isOver = true;
  await bench.close();
}
