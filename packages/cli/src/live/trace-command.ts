/** `stamp trace`: requests of clients as they end at the front-ends, until Ctrl-C. Nothing is kept, and nothing is told of before. */
import { setTimeout as delay } from "node:timers/promises";
import { composeCluster } from "@stamp/cluster";
import type { Command } from "commander";
import { CommandError, configOf, runningCluster, withConfig } from "../context.ts";
import { toLine } from "../print.ts";
import { inspect, wantsJson } from "../running.ts";
import { sayAtPace, warn } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { accountName, whole } from "../values.ts";
import { firstOf, followRequests, type WantedRequests } from "./follow.ts";
import { statusesOf, statusKind, traceLine } from "./trace-text.ts";

interface TraceOptions {
  readonly account?: string;
  readonly operation?: string;
  readonly status?: string;
  readonly slowerThan?: string;
  readonly count?: string;
}

export function addTrace(program: Command): void {
  const command = topLevel(program, "trace")
    .option("--account <account>", "only requests of this account", accountName)
    .option("--operation <name>", "only operations with this in their names: PutBlob, blob, query, …")
    .option("--status <status>", "only answers with this status: 404, 4xx, 400-499", statusKind)
    .option(
      "--slower-than <milliseconds>",
      "only requests that took this time or longer, until the head of the answer",
      whole(0, 3_600_000),
    )
    .option("--count <requests>", "end after so many (default: Ctrl-C ends)", whole(1, 1_000_000_000))
    .option("--json", "for tools: one object a line");
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => trace(command));
}

async function trace(command: Command): Promise<void> {
  const options = command.opts<TraceOptions>();
  const json = wantsJson(command);
  const config = configOf(command);
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopped.abort());
  await inspect(command, async (_inspector, transport, _lockService, { processes }) => {
    const could = await followRequests(wantedBy(options), {
      transport,
      frontEnds: frontEndsIn(processes),
      frontEndsNow: async () => frontEndsIn((composeCluster() ?? (await runningCluster(config))).processes),
      told: firstOf(
        Number(options.count ?? Number.POSITIVE_INFINITY),
        (request, frontEnd) => sayAtPace(json ? toLine({ frontEnd, ...request }) : traceLine(request)),
        () => stopped.abort(),
      ),
      note: (text) => warn(`stamp: ${text}`),
      sleep: (ms, signal) => delay(ms, undefined, { signal }).catch(() => undefined),
      signal: stopped.signal,
    });
    if (could === 0) throw new CommandError("no front-end of this stamp can be followed");
  });
}

const frontEndsIn = <P extends { readonly role: string }>(processes: readonly P[]): P[] =>
  processes.filter(({ role }) => role === "front-end");

const wantedBy = ({ account = "", operation = "", status, slowerThan = "0" }: TraceOptions): WantedRequests => ({
  account,
  operation,
  ...(statusesOf(status ?? "") ?? { statusMin: 0, statusMax: 0 }),
  tookMinMs: Number(slowerThan),
});
