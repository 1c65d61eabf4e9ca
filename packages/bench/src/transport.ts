/**
 * Measures the cost of a call between two processes: `node packages/bench/src/transport.ts [seconds]`. A server process
 * answers at once; this process calls it over loopback, in both lanes, and the same in one process. Prints throughput,
 * latency and CPU of both sides per call.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { ok, unwrap } from "@stamp/base";
import type { Client, ServedService, Transport } from "@stamp/ports";
import { servedPartly } from "@stamp/ports";
import { GrpcTransport, InProcessNetwork } from "@stamp/ports-node";
import { ExtentNode, MetadataStore, Status } from "@stamp/wire";

const mebibyte = 1024 * 1024;
const value = new Uint8Array(1024).fill(7);
const large = new Uint8Array(4 * mebibyte).fill(7);

const services = (): ServedService[] => [
  servedPartly(ExtentNode, {
    append: async (request) => ok({ endBytes: request.expectedOffsetBytes }),
    read: async (request) => ok({ payload: large.subarray(0, request.lengthBytes) }),
  }),
  servedPartly(MetadataStore, { getKeys: async (request) => ok({ entries: [{ key: request.keys[0] ?? "", value, version: 1n }] }) }),
  servedPartly(Status, {
    getStatus: async () => {
      const { user, system } = process.cpuUsage();
      return ok({ uptimeMs: BigInt(user + system) });
    },
  }),
];

interface Scenario {
  readonly name: string;
  readonly bytes: number;
  readonly concurrent: number;
  readonly call: (node: Client<typeof ExtentNode>, store: Client<typeof MetadataStore>) => Promise<unknown>;
}

const options = { timeoutMs: 10_000 };
const key = "k".repeat(1000);
const scenarios: Scenario[] = [
  {
    name: "control, 1 KiB each way",
    bytes: 1024,
    concurrent: 64,
    call: async (_node, store) => unwrap(await store.getKeys({ keys: [key] }, options)),
  },
  {
    name: "control, 1 KiB each way, alone",
    bytes: 1024,
    concurrent: 1,
    call: async (_node, store) => unwrap(await store.getKeys({ keys: [key] }, options)),
  },
  {
    name: "bulk, append of 1 KiB",
    bytes: 1024,
    concurrent: 64,
    call: async (node) => unwrap(await node.append({ payload: [value] }, options)),
  },
  {
    name: "bulk, append of 1 KiB, alone",
    bytes: 1024,
    concurrent: 1,
    call: async (node) => unwrap(await node.append({ payload: [value] }, options)),
  },
  ...[1, 4].map((size) => ({
    name: `bulk, append of ${size} MiB`,
    bytes: size * mebibyte,
    concurrent: 8,
    call: async (node: Client<typeof ExtentNode>) => unwrap(await node.append({ payload: [large.subarray(0, size * mebibyte)] }, options)),
  })),
  ...[1, 4].map((size) => ({
    name: `bulk, read of ${size} MiB`,
    bytes: size * mebibyte,
    concurrent: 8,
    call: async (node: Client<typeof ExtentNode>) => unwrap(await node.read({ lengthBytes: size * mebibyte }, options)),
  })),
];

async function measure(transport: Transport, address: string, seconds: number, label: string): Promise<void> {
  const node = transport.client(address, ExtentNode);
  const store = transport.client(address, MetadataStore);
  const status = transport.client(address, Status);
  const serverCpuUs = async (): Promise<number> => Number(unwrap(await status.getStatus({}, options)).uptimeMs);
  for (const scenario of scenarios) {
    const run = async (forMs: number): Promise<number[]> => {
      const latencies: number[] = [];
      const untilMs = performance.now() + forMs;
      const worker = async (): Promise<void> => {
        for (;;) {
          const startMs = performance.now();
          if (startMs >= untilMs) return;
          await scenario.call(node, store);
          latencies.push(performance.now() - startMs);
        }
      };
      await Promise.all(Array.from({ length: scenario.concurrent }, worker));
      return latencies;
    };
    await run(400);
    const serverBefore = await serverCpuUs();
    const before = process.cpuUsage();
    const startMs = performance.now();
    const latencies = await run(seconds * 1000);
    const tookMs = performance.now() - startMs;
    const cpu = process.cpuUsage(before);
    const serverUs = (await serverCpuUs()) - serverBefore;
    latencies.sort((a, b) => a - b);
    const count = latencies.length;
    const at = (part: number): string => (latencies[Math.min(count - 1, Math.floor(count * part))] as number).toFixed(2);
    const rate =
      scenario.bytes >= mebibyte
        ? `${Math.round((count * scenario.bytes) / 1e3 / tookMs)} MB/s`
        : `${Math.round((count * 1000) / tookMs)} /s`;
    const caller = ((cpu.user + cpu.system) / count).toFixed(1);
    console.log(
      `${label.padEnd(11)} ${scenario.name.padEnd(32)} ${String(scenario.concurrent).padStart(3)} at once ${rate.padStart(12)}` +
        `   p50 ${at(0.5)} p99 ${at(0.99)} ms   CPU ${caller}${label === "in process" ? "" : ` + ${(serverUs / count).toFixed(1)}`} µs`,
    );
  }
}

if (process.argv[2] === "server") {
  const listener = await new GrpcTransport().serve("127.0.0.1:0", services());
  process.send?.(listener.address);
  process.on("disconnect", () => process.exit(0));
} else {
  const seconds = Number(process.argv[2] ?? 3);
  const child = fork(new URL(import.meta.url), ["server"], { stdio: "inherit" });
  const [address] = (await once(child, "message")) as [string];
  const transport = new GrpcTransport();
  await measure(transport, address, seconds, "gRPC");
  await transport.close();
  child.disconnect();
  await once(child, "exit");
  const network = new InProcessNetwork();
  const local = network.transport("bench");
  await network.transport("server").serve("server", services());
  await measure(local, "server", seconds, "in process");
}
