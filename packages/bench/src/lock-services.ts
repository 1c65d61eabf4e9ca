/**
 * `stamp bench lock-services`: the cost of three lock services that replicate the metadata, beside one. A stamp of each kind runs, and each round
 * measures both, one after the other: transactions of the metadata store, seals of an empty extent with its successor, and puts of 1 KiB.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { unwrap, utf8 } from "@stamp/base";
import { ownCredential } from "@stamp/cluster";
import { BlobClient, type DrillTarget, startOwn } from "@stamp/drills";
import { GrpcTransport } from "@stamp/ports-node";
import { LockService, MetadataStore, StreamManager } from "@stamp/wire";

const usage = `pnpm bench lock-services [--rounds 3] [--seconds 4]
One stamp with one lock service and one with three, in turns: metadata transactions per second by 16 writers, seals one after another, and puts
of 1 KiB one after another. Each figure is that of all rounds together.`;

const writers = 16;
const callMs = 10_000;

interface Figure {
  readonly name: string;
  /** Number of calls at a time. */
  readonly parallel: number;
  readonly work: Work;
  /** Duration of each call, in milliseconds. */
  readonly times: number[];
  elapsedMs: number;
}

type Work = (number: number) => Promise<void>;

export async function lockServicesBench(args: string[]): Promise<void> {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: "string", default: "3" },
      seconds: { type: "string", default: "4" },
      help: { type: "boolean", default: false },
    },
  });
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  if (values.help || !(rounds >= 1) || !(seconds > 0)) {
    console.log(usage);
    process.exit(values.help ? 0 : 2);
  }
  const folder = mkdtempSync(join(tmpdir(), "stamp-bench-"));
  const targets = new Map<number, DrillTarget>();
  const transports: GrpcTransport[] = [];
  try {
    for (const count of [1, 3]) {
      const dataDir = join(folder, String(count));
      const target = await startOwn({ dataDir, lockServices: count, streamManagers: 1, partitionManagers: 1 }, true);
      targets.set(count, target);
    }
    // A tool may neither have a lease nor own a stream. No location service has its lease here.
    const transportOf = (count: number, caller: "location-service" | "partition-manager"): GrpcTransport => {
      const transport = new GrpcTransport({ credential: () => ownCredential({ dataDir: join(folder, String(count)) }, caller) });
      transports.push(transport);
      return transport;
    };
    const figures: Figure[] = [];
    for (const [count, target] of targets) {
      const name = `${count} lock service${count === 1 ? "" : "s"}`;
      const add = (what: string, parallel: number, work: Work) =>
        figures.push({ name: `${what}, ${name}`, parallel, work, times: [], elapsedMs: 0 });
      add("metadata transactions", writers, await transactions(target, transportOf(count, "location-service")));
      add("seal and successor", 1, await seals(target, transportOf(count, "partition-manager")));
      add("put 1 KiB", 1, await puts(target));
    }
    figures.sort((one, other) => one.name.localeCompare(other.name));
    for (let round = 0; round < rounds; round++)
      for (const figure of round % 2 === 0 ? figures : figures.toReversed()) await measure(figure, seconds * 1_000);
    console.log("| what | per second | p50, ms | p99, ms | times |\n|---|---|---|---|---|");
    for (const figure of figures) console.log(lineOf(figure));
  } finally {
    for (const transport of transports) await transport.close();
    for (const target of targets.values()) await target.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measure(figure: Figure, ms: number): Promise<void> {
  const startMs = performance.now();
  const worker = async (): Promise<void> => {
    while (performance.now() < startMs + ms) {
      const beginMs = performance.now();
      await figure.work(next++);
      figure.times.push(performance.now() - beginMs);
    }
  };
  await Promise.all(Array.from({ length: figure.parallel }, worker));
  figure.elapsedMs += performance.now() - startMs;
}

let next = 0;

function lineOf({ name, times, elapsedMs }: Figure): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (part: number): string => (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0).toFixed(1);
  return `| ${name} | ${Math.round((times.length * 1_000) / elapsedMs)} | ${at(0.5)} | ${at(0.99)} | ${times.length} |`;
}

async function addressOf(target: DrillTarget, role: string, state: string): Promise<string> {
  const found = (await target.status()).processes.find((each) => each.role === role && each.state === state);
  if (found === undefined) throw new Error(`no ${role} is ${state}`);
  return found.grpc;
}

async function transactions(target: DrillTarget, transport: GrpcTransport): Promise<Work> {
  const address = await addressOf(target, "lock-service", "serving");
  const name = { holder: "bench", incarnation: 1n, address: "bench", identity: "bench", instance: "bench" };
  const lease = await transport
    .client(address, LockService)
    .acquireLease({ name: "location-service", termMs: 300_000, ...name }, { timeoutMs: callMs });
  const fence = { leaseName: "location-service", leaseEpoch: unwrap(lease).leaseEpoch };
  const store = transport.client(address, MetadataStore);
  return async (number) => {
    const writes = [{ key: `location/bench/${number % 1_000}`, value: utf8(`${number}`.padEnd(200)) as Uint8Array<ArrayBuffer> }];
    unwrap(await store.transact({ fence, conditions: [], writes }, { timeoutMs: callMs }));
  };
}

async function seals(target: DrillTarget, transport: GrpcTransport): Promise<Work> {
  const manager = transport.client(await addressOf(target, "stream-manager", "leader"), StreamManager);
  const stream = { name: "/bench/seals", ownerEpoch: 1n };
  unwrap(await manager.createStream(stream, { timeoutMs: callMs }));
  const allocate = { ...stream, knownCommittedBytes: 0n, avoidAddresses: [], complete: false };
  let extentId = unwrap(await manager.sealAndAllocate({ ...allocate, extentId: 0n }, { timeoutMs: callMs })).extent?.extentId ?? 0n;
  return async () => {
    extentId = unwrap(await manager.sealAndAllocate({ ...allocate, extentId }, { timeoutMs: callMs })).extent?.extentId ?? 0n;
  };
}

async function puts(target: DrillTarget): Promise<Work> {
  const client = BlobClient.fromConnectionString(target.connectionString);
  await client.createContainer("bench");
  const body = Buffer.alloc(1_024, "x");
  return async (number) => {
    const put = await client.put("bench", `b${number}`, body);
    if (put.kind !== "answer" || put.status !== 201) throw new Error(JSON.stringify(put));
  };
}
