/**
 * One leader among five processes, and the leader killed again and again (article "Leader election").
 *
 *   node examples/leader-election.ts [--candidates 5] [--kills 3]
 *
 * Each leader writes its fencing token to a blob at each half second. The parent kills it with SIGKILL after five seconds, waits for the
 * next one and checks that no two lead at once by the tokens' account: a token never falls, and a stale write is refused.
 */
import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { FencedError, LeaderElector, putFenced } from "@stamp/coordination";
import { container, option } from "./account.ts";

const candidates = option("--candidates", 5);
const kills = option("--kills", 3);
const leases = container("leases");
const blobName = process.env.LEADER ?? `leader-${Date.now()}`;

interface Report {
  readonly event: "elected" | "lost" | "fenced";
  readonly token: string;
}

if (process.send !== undefined) await candidate();
else await parent();

async function candidate(): Promise<void> {
  const elector = new LeaderElector({ container: leases, blobName }, { leaseSeconds: 15, acquireEveryMs: 1_000, name: `${process.pid}` });
  const tell = (event: Report["event"], token: bigint): void => {
    if (process.connected) process.send?.({ event, token: String(token) } satisfies Report);
  };
  elector.on("elected", ({ fencingToken }) => tell("elected", fencingToken));
  elector.on("lost", ({ fencingToken }) => tell("lost", fencingToken));
  const stop = new AbortController();
  process.on("disconnect", () => stop.abort());
  await elector.run(async (signal, { fencingToken }) => {
    while (!signal.aborted) {
      try {
        await putFenced(leases, `${blobName}-work`, new TextEncoder().encode(`${process.pid}`), fencingToken, signal);
      } catch (error) {
        if (error instanceof FencedError) tell("fenced", fencingToken);
        else throw error;
      }
      await delay(500, undefined, { signal });
    }
  }, stop.signal);
}

async function parent(): Promise<void> {
  const running = new Set<ChildProcess>();
  let highest = 0n;
  let wrong = 0;
  let elected = Promise.withResolvers<{ leader: ChildProcess; token: bigint }>();
  const start = (): void => {
    const one = fork(import.meta.filename, process.argv.slice(2), { env: { ...process.env, LEADER: blobName } });
    running.add(one);
    one.on("exit", () => running.delete(one));
    one.on("message", ({ event, token }: Report) => {
      if (event !== "elected") return;
      if (BigInt(token) <= highest) wrong++;
      highest = BigInt(token);
      elected.resolve({ leader: one, token: highest });
    });
  };
  for (let started = 0; started < candidates; started++) start();
  const gaps: number[] = [];
  for (let round = 0; ; round++) {
    const fromMs = performance.now();
    const { leader, token } = await elected.promise;
    const gapMs = performance.now() - fromMs;
    console.log(`process ${leader.pid} leads with token ${token}${round === 0 ? "" : `, ${(gapMs / 1000).toFixed(1)} s after the kill`}`);
    if (round > 0) gaps.push(gapMs);
    if (round === kills) break;
    await delay(5_000);
    elected = Promise.withResolvers();
    leader.kill("SIGKILL");
    start();
  }
  for (const one of running) one.disconnect();
  gaps.sort((a, b) => a - b);
  const seconds = (at: number): string => ((gaps[Math.min(gaps.length - 1, Math.floor(at * gaps.length))] ?? 0) / 1000).toFixed(1);
  console.log(
    `${kills} leaders killed; without a leader: median ${seconds(0.5)} s, longest ${seconds(1)} s; tokens that did not rise: ${wrong}`,
  );
  process.exitCode = wrong === 0 ? 0 : 1;
}
