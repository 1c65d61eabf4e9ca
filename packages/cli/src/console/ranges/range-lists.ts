/** Ranges for the page: the list of them, one of them, their load over the last hour, and what load balancing would do and did. */
import { FailureError } from "@stamp/base";
import type { BalanceRow, BalanceRows, Page, RangeRow } from "@stamp/console-page";
import type { Client } from "@stamp/ports";
import { fromWire, type PartitionManager, type RangePartition, type RebalanceStep } from "@stamp/wire";
import type { StampFacts } from "../../health/facts.ts";
import type { List } from "../lists.ts";
import type { HeatHistory } from "./heat-history.ts";
import { rangeRows } from "./range-rows.ts";

const pageMax = 500;
/** Steps that a page gets: of thousands of ranges many may be due for a merge. */
const stepsMax = 100;
const callTimeoutMs = 3_000;

export interface RangeListsParts {
  /** Facts of the last look; undefined: no stamp answered. */
  readonly facts: () => StampFacts | undefined;
  readonly heat: HeatHistory;
  /** Client of the partition manager that leads. Throws if none does. */
  readonly manager: () => Promise<Pick<Client<typeof PartitionManager>, "getRebalancePlan">>;
  readonly wallMs: () => number;
}

export const rangeLists = ({ facts, heat, manager, wallMs }: RangeListsParts): Readonly<Record<string, List>> => ({
  "/api/ranges": async (query) => pageOf(facts(), query.get("after") ?? ""),
  "/api/range": async (query) => ({
    items: rowsOf(
      facts(),
      rangesOf(facts()).filter(({ rangeId }) => rangeId === query.get("id")),
    ),
    next: null,
  }),
  "/api/heat": async (query) => heatOf(heat, facts(), query.get("range") ?? ""),
  "/api/balance": async () => balanceOf(await manager(), wallMs()),
});

function rangesOf(facts: StampFacts | undefined): readonly RangePartition[] {
  const ranges = facts?.partitionLayer?.ranges;
  if (ranges === undefined) throw new Error("no partition manager that leads answered; see the findings on the overview");
  return ranges;
}

const rowsOf = (facts: StampFacts | undefined, ranges: readonly RangePartition[]): RangeRow[] =>
  rangeRows(ranges, { processes: facts?.processes ?? [] });

/** `after`: position in the list of the last snapshot. Ranges that change meanwhile may come twice, or not at all, until the list is loaded again. */
function pageOf(facts: StampFacts | undefined, after: string): Page<RangeRow> {
  const all = rangesOf(facts);
  const from = /^\d{1,9}$/.test(after) ? Number(after) : 0;
  const some = all.slice(from, from + pageMax);
  return { items: rowsOf(facts, some), next: from + some.length < all.length ? String(from + some.length) : null };
}

function heatOf(heat: HeatHistory, facts: StampFacts | undefined, rangeId: string): object {
  if (rangeId === "") return heat.map();
  const range = rangesOf(facts).find((one) => one.rangeId === rangeId);
  if (range === undefined) throw new Error(`there is no range ${rangeId} now: it was split or merged; load the list again`);
  return heat.map(range);
}

async function balanceOf(manager: Awaited<ReturnType<RangeListsParts["manager"]>>, nowMs: number): Promise<BalanceRows> {
  const answer = await manager.getRebalancePlan({}, { timeoutMs: callTimeoutMs });
  if (!answer.ok) throw new FailureError(answer.failure);
  const { automatic, waitsFor, steps, done } = answer.value;
  const row = ({ kind, rangeId, to, why, failure }: RebalanceStep, atMs: number | null): BalanceRow => ({
    kind,
    range: rangeId,
    to,
    why,
    failure,
    atMs,
  });
  return {
    isAutomatic: automatic,
    waitsFor,
    planned: steps.slice(0, stepsMax).map((step) => row(step, null)),
    done: done.slice(0, stepsMax).map((step) => row(step, nowMs - fromWire(step.msAgo))),
  };
}
