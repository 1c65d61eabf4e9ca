/** `stamp top`: what goes on now, drawn anew every few seconds until Ctrl-C. From the facts of `stamp status`, and counts of the front-ends. */
import { setTimeout as delay } from "node:timers/promises";
import { ownTransport } from "@stamp/cluster";
import { fromWire, Requests } from "@stamp/wire";
import type { Command } from "commander";
import { rangeRows } from "../console/ranges/range-rows.ts";
import type { Counted } from "../console/snapshot.ts";
import { snapshotOf } from "../console/snapshot.ts";
import { configOf, withConfig } from "../context.ts";
import type { StampFacts } from "../health/facts.ts";
import { gather, sinceNow } from "../health/gather.ts";
import { toLine } from "../print.ts";
import { advisedText, sayAtPace, screenSize, showOnScreen } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { whole } from "../values.ts";
import { type AccountCounts, accountLoads, type Counts, type Moment, topText } from "./top-text.ts";

const countTimeoutMs = 1_000;

interface TopOptions {
  readonly every?: string;
  readonly times?: string;
  readonly json?: boolean;
}

export function addTop(program: Command): void {
  const command = topLevel(program, "top")
    .option("--every <seconds>", "look so often (default: 2)", whole(1, 3_600))
    .option("--times <looks>", "end after so many looks (default: Ctrl-C ends; into a file or a pipe, 2)", whole(1, 1_000_000_000))
    .option("--json", "for tools: one object a line for each look");
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => top(command));
}

async function top(command: Command): Promise<void> {
  const { every = "2", times, json = false } = command.opts<TopOptions>();
  const config = configOf(command);
  const looks = Number(times ?? (screenSize() === undefined && !json ? 2 : Number.POSITIVE_INFINITY));
  const stopped = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stopped.abort());
  const transport = ownTransport(config);
  try {
    let before: { readonly counted: Counted; readonly counts: Counts } | undefined;
    for (let look = 1; look <= looks && !stopped.signal.aborted; look++) {
      if (look > 1) await delay(Number(every) * 1_000, undefined, { signal: stopped.signal }).catch(() => undefined);
      if (stopped.signal.aborted) break;
      const facts = await gather(config, transport, { view: false, nowMs: sinceNow() });
      const counts = await countsOf(facts, transport);
      const { snapshot, counted } = snapshotOf(facts, before?.counted);
      const ranges = rangeRows(facts.partitionLayer?.ranges ?? [], facts);
      await show({ snapshot, ranges, accounts: accountLoads(before?.counts, counts) }, json);
      before = { counted, counts };
    }
  } finally {
    await transport.close();
  }
}

async function show(moment: Moment, json: boolean): Promise<void> {
  const screen = screenSize();
  if (json) await sayAtPace(toLine(moment));
  else if (screen === undefined) await sayAtPace(`${advisedText(topText(moment, Number.POSITIVE_INFINITY))}\n`);
  else showOnScreen(topText(moment, screen.rows), screen);
}

/** Returns counts of all front-ends, without those that do not answer or are of a release before such counts. */
async function countsOf({ processes }: StampFacts, transport: ReturnType<typeof ownTransport>): Promise<Counts> {
  const frontEnds = processes.filter(({ role, answer }) => role === "front-end" && answer !== undefined);
  const answers = await Promise.all(
    frontEnds.map(async ({ name, grpc }) => {
      const told = await transport.client(grpc, Requests).countByAccount({}, { timeoutMs: countTimeoutMs });
      if (!told.ok) return [];
      const counts = told.value.accounts.map(({ account, requests, clientErrors, serverErrors, tookMs }): [string, AccountCounts] => [
        account,
        { requests: fromWire(requests), clientErrors: fromWire(clientErrors), serverErrors: fromWire(serverErrors), tookMs },
      ]);
      return [[name, new Map(counts)] as const];
    }),
  );
  return { atMs: performance.now(), byFrontEnd: new Map(answers.flat()) };
}
