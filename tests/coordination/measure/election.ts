/**
 * Five candidates; the leader is killed, paused past its lease and cut off in turn. Each leader writes to one blob under its fencing token
 * all the time. Two leaders would show as an accepted write that began after an accepted write of a higher token had ended.
 */
import { type ChildProcess, fork } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { FencedError, LeaderElector, putFenced } from "@stamp/coordination";
import { container, machineMs, part, spread } from "./clock.ts";
import { Relay } from "./relay.ts";

type Report =
  | { readonly event: "elected" | "lost" | "fenced"; readonly token: number }
  /** An accepted write, and when it began and ended, in milliseconds of the machine's monotonic time. */
  | { readonly event: "wrote"; readonly token: number; readonly fromMs: number; readonly toMs: number };

interface Candidate {
  readonly child: ChildProcess;
  readonly relay: Relay;
}

const faults = ["killed", "paused", "cut off"] as const;
const blobName = process.env.LEADER ?? `leader-${process.pid}-${Date.now()}`;
const leaseSeconds = 15;

if (process.env.RELAY !== undefined) await candidate(Number(process.env.RELAY));

async function candidate(port: number): Promise<void> {
  const leases = container("leases", port);
  const tell = (report: Report): void => {
    if (process.connected) process.send?.(report);
  };
  const elector = new LeaderElector({ container: leases, blobName }, { leaseSeconds, acquireEveryMs: 1_000 });
  elector.on("elected", ({ fencingToken }) => tell({ event: "elected", token: Number(fencingToken) }));
  elector.on("lost", ({ fencingToken }) => tell({ event: "lost", token: Number(fencingToken) }));
  const stop = new AbortController();
  process.on("disconnect", () => stop.abort());
  await elector.run(async (signal, { fencingToken }) => {
    const token = Number(fencingToken);
    while (!signal.aborted) {
      const fromMs = machineMs();
      try {
        await putFenced(leases, `${blobName}-work`, Buffer.from(`${process.pid}`), fencingToken, signal);
        tell({ event: "wrote", token, fromMs, toMs: machineMs() });
      } catch (error) {
        if (error instanceof FencedError) tell({ event: "fenced", token });
        else if (signal.aborted) return;
      }
      await delay(100);
    }
  }, stop.signal);
  process.exit(0);
}

/** Runs for about `seconds`, and at least one round. Prints a table; returns what was seen. */
export async function election(seconds: number, candidates = 5, kinds: readonly (typeof faults)[number][] = faults) {
  const endpoint = new URL(part("BlobEndpoint"));
  const running = new Set<Candidate>();
  const seen = { elections: 0, writes: 0, fenced: 0, twoLeaders: 0, notRisen: 0 };
  const gaps = new Map<string, number[]>(kinds.map((kind) => [kind, []]));
  let highest = 0;
  /** End of the last accepted write of each token, in milliseconds. */
  const lastEndMs = new Map<number, number>();
  const firstEndMs = new Map<number, number>();
  let leader: Candidate | undefined;
  const start = async (): Promise<void> => {
    const relay = await Relay.to(endpoint.hostname, Number(endpoint.port));
    const child = fork(import.meta.filename, [], { env: { ...process.env, LEADER: blobName, RELAY: String(relay.port) } });
    const one: Candidate = { child, relay };
    running.add(one);
    child.on("exit", () => {
      running.delete(one);
      relay.close();
    });
    child.on("message", (report: Report) => {
      const { token } = report;
      if (report.event === "elected") {
        seen.elections++;
        if (token <= highest) seen.notRisen++;
        highest = Math.max(highest, token);
      }
      if (report.event === "fenced") seen.fenced++;
      if (report.event !== "wrote") return;
      seen.writes++;
      for (const [other, endMs] of firstEndMs) if (other > token && endMs < report.fromMs) seen.twoLeaders++;
      if (!firstEndMs.has(token)) firstEndMs.set(token, report.toMs);
      lastEndMs.set(token, Math.max(lastEndMs.get(token) ?? 0, report.toMs));
      // Reports of a process that was paused come late.
      for (const [other, endMs] of lastEndMs) if (other < token && endMs > report.toMs + 60_000) seen.twoLeaders++;
      if (token === highest) leader = one;
    });
  };
  const leads = async (above: number): Promise<number> => {
    for (let tries = 0; !firstEndMs.has(highest) || highest <= above; tries++) {
      if (tries > 1_800) throw new Error(`nobody leads for 90 s after token ${above}`);
      await delay(50);
    }
    return highest;
  };
  for (let n = 0; n < candidates; n++) await start();
  const untilMs = machineMs() + seconds * 1_000;
  try {
    let token = await leads(0);
    for (let round = 0; round < kinds.length || machineMs() < untilMs; round++) {
      const kind = kinds[round % kinds.length] ?? "killed";
      await delay(1_000 + Math.random() * 2_000);
      const victim = leader;
      if (victim === undefined) throw new Error("nobody leads");
      if (kind === "killed") victim.child.kill("SIGKILL");
      else if (kind === "paused") victim.child.kill("SIGSTOP");
      else victim.relay.cut();
      const next = await leads(token);
      gaps.get(kind)?.push(((firstEndMs.get(next) ?? 0) - (lastEndMs.get(token) ?? 0)) / 1_000);
      if (kind === "killed") await start();
      victim.child.kill("SIGCONT");
      victim.relay.mend();
      token = next;
    }
    // The candidate that was paused or cut off last reports the writes that it made too late.
    await delay(3_000);
  } finally {
    for (const { child, relay } of running) {
      child.kill("SIGKILL");
      relay.close();
    }
  }
  console.log(`elections ${seen.elections}, accepted writes ${seen.writes}, refused by their token ${seen.fenced}, `);
  console.log(`accepted after a higher token's ${seen.twoLeaders}, tokens that did not rise ${seen.notRisen}`);
  console.log(`| leader was | times | least s | median s | 90% s | most s |\n|---|---|---|---|---|---|`);
  for (const [kind, values] of gaps) console.log(`| ${kind} | ${spread(values)} |`);
  return seen;
}
