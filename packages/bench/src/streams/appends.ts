/**
 * Large appends, and small ones beside them, with the bytes of the large ones in the journal first and with pointer records: what the extent
 * nodes write to their disks for each byte appended, their processor time, throughput, and how long appends take. Every round has both,
 * each on a cluster of its own.
 *
 * Two streams take large appends, some in flight; one takes small ones, 100 a second.
 */
import { unwrap } from "@stamp/base";
import type { DrillTarget } from "@stamp/drills";
import type { World } from "@stamp/ports";
import { Status } from "@stamp/wire";
import { cpuMsOf } from "../processor-time.ts";
import { distribution, forever, numbers, pause, withCluster } from "./bench.ts";

const kibibyte = 1024;
const mebibyte = 1024 * 1024;
const warmMs = 3_000;
const smallEveryMs = 10;

interface Taken {
  bytes: number;
  seconds: number;
  readonly largeMs: number[];
  readonly smallMs: number[];
  writtenBytes: number;
  cpuMs: number;
}

export async function appends(args: string[]): Promise<void> {
  const given = numbers(args, "appends", {
    seconds: 5,
    rounds: 2,
    "append-kib": 1_024,
    "in-flight": 2,
    streams: 2,
    "in-place-kib": 256,
    "behind-kib": 2_048,
  });
  const variants = [
    { name: "journal first", roles: { inPlaceBytesMin: 0 } },
    {
      name: "pointer records",
      roles: { inPlaceBytesMin: given["in-place-kib"] * kibibyte, inPlaceBehindBytes: given["behind-kib"] * kibibyte },
    },
  ];
  const taken = variants.map((): Taken => ({ bytes: 0, seconds: 0, largeMs: [], smallMs: [], writtenBytes: 0, cpuMs: 0 }));
  for (let round = 0; round < given.rounds; round++) {
    // Neither is always the one that comes after the other.
    const order = round % 2 === 0 ? [0, 1] : [1, 0];
    for (const i of order) await measure(given, variants[i]?.roles ?? {}, taken[i] as Taken);
  }
  console.log(
    `appends of ${given["append-kib"]} KiB, ${given["in-flight"]} in flight on each of ${given.streams} streams; small ones of 1 KiB`,
  );
  for (const [i, { name }] of variants.entries()) {
    const { bytes, seconds, largeMs, smallMs, writtenBytes, cpuMs } = taken[i] as Taken;
    const written = writtenBytes / (3 * bytes);
    const cpu = cpuMs / ((3 * bytes) / mebibyte);
    console.log(
      `${name.padEnd(16)} ${(bytes / seconds / 1e6).toFixed(0)} MB/s; each node writes ${written.toFixed(2)} bytes for each byte, ${cpu.toFixed(2)} ms of processor a MiB`,
    );
    console.log(`  large  ${distribution(largeMs)}`);
    console.log(`  small  ${distribution(smallMs)}`);
  }
}

async function measure(
  given: Readonly<Record<"seconds" | "append-kib" | "in-flight" | "streams", number>>,
  config: Readonly<Record<string, number>>,
  taken: Taken,
): Promise<void> {
  await withCluster({ roles: { "extent-node": config } }, async ({ target, world, client, open }) => {
    const block = new Uint8Array(Math.min(given["append-kib"] * kibibyte, 4 * mebibyte)).map((_, i) => i % 251);
    const blocks = Array.from({ length: Math.max(1, (given["append-kib"] * kibibyte) / block.length) }, () => block);
    const payloadBytes = blocks.length * block.length;
    const startMs = performance.now();
    const fromMs = startMs + warmMs;
    const untilMs = fromMs + given.seconds * 1_000;
    let bytes = 0;
    const appending = async (name: string, payload: readonly Uint8Array[], latencies: number[], restMs: number): Promise<void> => {
      const stream = await open(client(), name);
      const one = async (): Promise<void> => {
        while (performance.now() < untilMs) {
          const sentMs = performance.now();
          unwrap(await stream.append(payload, forever));
          if (sentMs < fromMs) continue;
          latencies.push(performance.now() - sentMs);
          if (latencies === taken.largeMs) bytes += payloadBytes;
          if (restMs > 0) await pause(restMs);
        }
      };
      await Promise.all(Array.from({ length: restMs > 0 ? 1 : given["in-flight"] }, one));
    };
    const all = Array.from({ length: given.streams }, (_, i) => appending(`/bench/large-${i}`, blocks, taken.largeMs, 0));
    all.push(appending("/bench/small", [new Uint8Array(kibibyte).fill(7)], taken.smallMs, smallEveryMs));
    await pause(warmMs);
    const before = await use(target, world);
    const measuredMs = performance.now();
    await Promise.all(all);
    const seconds = (performance.now() - measuredMs) / 1_000;
    const after = await use(target, world);
    taken.bytes += bytes;
    taken.seconds += seconds;
    taken.writtenBytes += after.writtenBytes - before.writtenBytes;
    taken.cpuMs += after.cpuMs - before.cpuMs;
  });
}

/** Use of all extent nodes so far. (`write_bytes` of /proc counts large folios as a whole.) */
async function use(target: DrillTarget, world: World): Promise<{ readonly writtenBytes: number; readonly cpuMs: number }> {
  let [writtenBytes, cpuMs] = [0, 0];
  for (const { role, pid, grpc } of (await target.status()).processes) {
    if (role !== "extent-node" || pid === null) continue;
    const { facts = {} } = unwrap(await world.transport.client(grpc, Status).getStatus({}, { timeoutMs: 10_000 }));
    writtenBytes += Number(facts.journalBytesWritten) + Number(facts.fileBytesWritten);
    cpuMs += cpuMsOf(pid) ?? Number.NaN;
  }
  return { writtenBytes, cpuMs };
}
