/** Ten processes with ten waiting workers each: the time from the release to the last worker that runs. */
import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { BlobGlobalFlag, GrpcSignalChannel, ListeningRelease, PollingRelease, Release } from "@stamp/coordination";
import { container, machineMs, part, spread } from "./clock.ts";
import { Relay } from "./relay.ts";

const cases = [
  { name: "polling", way: "polling", late: false, cut: "no" },
  { name: "listening", way: "listening", late: false, cut: "no" },
  { name: "both", way: "both", late: false, cut: "no" },
  { name: "both, half of them start 1 s after the release", way: "both", late: true, cut: "no" },
  { name: "both, connections cut before the release", way: "both", late: false, cut: "cut" },
  { name: "both, connections cut before the release, back after 1 s", way: "both", late: false, cut: "mended" },
  { name: "listening, half of them start 1 s after the release", way: "listening", late: true, cut: "no" },
] as const;
type Case = (typeof cases)[number];

const deadlineMs = 8_000;

const channelAt = (address: string): GrpcSignalChannel =>
  new GrpcSignalChannel({ addresses: [address], account: part("AccountName"), accountKey: part("AccountKey") });

if (process.env.FLAG !== undefined) await waiting(process.env.FLAG, process.env.WAY ?? "", process.env.ADDRESS ?? "");

async function waiting(name: string, way: string, address: string): Promise<void> {
  const channel = channelAt(address);
  const flag = new BlobGlobalFlag(container("globalflags"), name);
  const ways: Record<string, { wait(options: { deadlineMs: number }): Promise<void> }> = {
    polling: new PollingRelease(flag),
    listening: new ListeningRelease(channel, flag.name),
    both: new Release(flag, channel),
  };
  process.send?.("begun");
  const workers = Array.from({ length: 10 }, async () => {
    await ways[way]?.wait({ deadlineMs: Number(process.env.DEADLINE) });
    return machineMs();
  });
  const done = await Promise.allSettled(workers);
  const times = done.map((one) => (one.status === "fulfilled" ? one.value : null));
  await new Promise((sent) => process.send?.(times, undefined, undefined, sent));
  process.exit(0);
}

/** Returns, for each case, the number of workers that ran and that waited in vain. */
export async function release(front: string, rounds: number) {
  console.log("| way | ran | waited in vain | rounds | least ms | median ms | 90% ms | most ms |\n|---|---|---|---|---|---|---|---|");
  const results: { name: string; ran: number; vain: number }[] = [];
  for (const each of cases) {
    const [lasts, result]: [number[], { name: string; ran: number; vain: number }] = [[], { name: each.name, ran: 0, vain: 0 }];
    for (let round = 0; round < rounds; round++) {
      const times = await once(each, front, `start-${process.pid}-${Date.now()}`);
      const ran = times.filter((time) => time !== null);
      result.ran += ran.length;
      result.vain += times.length - ran.length;
      lasts.push(Math.max(...ran));
    }
    results.push(result);
    console.log(`| ${each.name} | ${result.ran} | ${result.vain} | ${spread(lasts, 0)} |`);
  }
  return results;
}

/** One release. Returns the time from the release to each worker's start, in milliseconds; null for who waited in vain. */
async function once({ way, late, cut }: Case, front: string, name: string): Promise<(number | null)[]> {
  const [host = "", port = ""] = front.split(":");
  const relay = await Relay.to(host, Number(port));
  const env = {
    ...process.env,
    FLAG: name,
    WAY: way,
    ADDRESS: `127.0.0.1:${relay.port}`,
    // Ends workers that no signal has reached: the measurement must not hang.
    DEADLINE: String(way === "listening" && late ? deadlineMs : 60_000),
  };
  const start = (): { child: ChildProcess; begun: Promise<void>; times: Promise<(number | null)[]> } => {
    const child = fork(import.meta.filename, [], { env });
    const begun = Promise.withResolvers<void>();
    const times = new Promise<(number | null)[]>((resolve, reject) => {
      child.on("message", (message: "begun" | (number | null)[]) => (message === "begun" ? begun.resolve() : resolve(message)));
      child.on("exit", (code) => (code === 0 ? undefined : reject(new Error(`a waiting process ended with ${code}`))));
    });
    return { child, begun: begun.promise, times };
  };
  const early = Array.from({ length: late ? 5 : 10 }, start);
  await Promise.all(early.map(({ begun }) => begun));
  await delay(1_500);
  if (cut !== "no") relay.cut();
  const channel = channelAt(front);
  const releasedMs = machineMs();
  await new Release(new BlobGlobalFlag(container("globalflags"), name), channel).release();
  if (late) await delay(1_000);
  const after = Array.from({ length: late ? 5 : 0 }, start);
  if (cut === "mended") {
    await delay(1_000);
    relay.mend();
  }
  const times = (await Promise.all([...early, ...after].map((one) => one.times))).flat();
  channel.close();
  relay.close();
  return times.map((time) => (time === null ? null : time - releasedMs));
}
