/**
 * The leader of the stream managers is killed under load, in three ways: killed (SIGKILL) and restarted by its supervisor, killed and kept
 * down, and stopped (SIGSTOP) until another leads. Steady appends and reads must not notice; a stream that needs a new extent every few
 * appends tells how long there was none, counted from the end of the old leader's lease.
 */
import { unwrap } from "@stamp/base";
import { LockService } from "@stamp/wire";
import { type Bench, distribution, forever, numbers, pause, until, withCluster } from "./bench.ts";

type How = "killed and restarted" | "killed and kept down" | "stopped and continued";
const ways: readonly How[] = ["killed and restarted", "killed and kept down", "stopped and continued"];

interface Sample {
  readonly fromMs: number;
  readonly toMs: number;
}

export async function failover(args: string[]): Promise<void> {
  const { rounds } = numbers(args, "failover", { rounds: 3 });
  await withCluster({}, async (bench) => {
    const load = await startLoad(bench);
    await pause(8_000);
    for (const how of ways) {
      for (let round = 0; round < rounds; round++) console.log(`${how}: ${await strike(bench, load, how)}`);
    }
    const quiet = (samples: readonly Sample[]): number[] =>
      samples.filter(({ fromMs, toMs }) => !load.strikes.some((one) => fromMs < one.toMs && toMs > one.fromMs)).map(length);
    const struck = (samples: readonly Sample[]): number[] =>
      samples.filter(({ fromMs, toMs }) => load.strikes.some((one) => fromMs < one.toMs && toMs > one.fromMs)).map(length);
    await load.stop();
    for (const [what, samples] of [
      ["appends", load.appends],
      ["reads", load.reads],
    ] as const) {
      console.log(`steady ${what} while nothing happened   ${distribution(quiet(samples))}`);
      console.log(`steady ${what} while nobody led         ${distribution(struck(samples))}`);
    }
  });
}

const length = ({ fromMs, toMs }: Sample): number => toMs - fromMs;

interface Load {
  readonly appends: Sample[];
  readonly reads: Sample[];
  /** When an append to the stream of tiny extents was last acknowledged in a new extent. */
  readonly newExtents: number[];
  readonly strikes: Sample[];
  stop(): Promise<void>;
}

async function startLoad({ client, open }: Bench): Promise<Load> {
  const steady = client();
  const stream = await open(steady, "/bench/steady");
  const newExtents: number[] = [];
  const tiny = await open(client({ extentTargetBytes: 8_000, onExtentChange: () => newExtents.push(performance.now()) }), "/bench/tiny");
  const [place] = unwrap(await stream.append([new Uint8Array(4_000)], forever));
  const load = { appends: [] as Sample[], reads: [] as Sample[], newExtents, strikes: [] as Sample[] };
  let running = true;
  const again = async (everyMs: number, work: () => Promise<void>): Promise<void> => {
    while (running) {
      await work();
      await pause(everyMs);
    }
  };
  const timed = async (into: Sample[], work: () => Promise<unknown>): Promise<void> => {
    const fromMs = performance.now();
    await work();
    into.push({ fromMs, toMs: performance.now() });
  };
  const loops = [
    again(5, () => timed(load.appends, async () => unwrap(await stream.append([new Uint8Array(1_000)], forever)))),
    again(5, () =>
      timed(load.reads, async () => unwrap(await steady.reader.read(place as NonNullable<typeof place>, { timeoutMs: 5_000 }))),
    ),
    again(10, async () => void unwrap(await tiny.append([new Uint8Array(3_000)], forever))),
  ];
  const stop = async (): Promise<void> => {
    running = false;
    await Promise.all(loops);
  };
  return { ...load, stop };
}

async function strike({ target, world, lockService }: Bench, load: Load, how: How): Promise<string> {
  const locks = world.transport.client(lockService, LockService);
  const lease = async () => unwrap(await locks.getLease({ name: "stream-manager" }, { timeoutMs: 2_000 }));
  const before = await lease();
  const fromMs = performance.now();
  if (how === "killed and restarted") await target.ask({ do: "signal", name: before.holder, signal: "SIGKILL" });
  else if (how === "killed and kept down") await target.ask({ do: "hold", name: before.holder });
  else await target.ask({ do: "signal", name: before.holder, signal: "SIGSTOP" });
  let endMs = performance.now() + (await lease()).remainingMs;
  let nextMs = 0;
  await until("another term", 30_000, async () => {
    const now = await lease();
    if (now.leaseEpoch === before.leaseEpoch) {
      if (!now.ended) endMs = performance.now() + now.remainingMs;
      return false;
    }
    nextMs = performance.now();
    return true;
  });
  // A restarted process takes over its own lease before that has ended.
  endMs = Math.min(endMs, nextMs);
  await until("a new extent", 30_000, async () => load.newExtents.some((atMs) => atMs > nextMs));
  const readyMs = load.newExtents.find((atMs) => atMs > nextMs) as number;
  load.strikes.push({ fromMs, toMs: readyMs });
  if (how === "killed and kept down") await target.ask({ do: "start", name: before.holder });
  if (how === "stopped and continued") await target.ask({ do: "signal", name: before.holder, signal: "SIGCONT" });
  await until("both managers are ready", 30_000, async () => (await target.status()).ready);
  await pause(3_000);
  const last = load.newExtents.filter((atMs) => atMs < fromMs + 50).at(-1) ?? fromMs;
  return `no new extent for ${(readyMs - last).toFixed(0)} ms; the first one ${(readyMs - endMs).toFixed(0)} ms after the lease was over`;
}
