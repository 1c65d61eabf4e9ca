/** Lists by name that go on over ranges. */
import { type Parsed, parsed } from "@stamp/azure-rest";
import { type Outcome, ok } from "@stamp/base";
import { restErrorOf } from "../objects/failures.ts";
import type { CallLimits, OperationKind, ResultKind, Router } from "./router.ts";

export interface PageOfRange {
  /** The first name of the next page; empty at the end. */
  readonly nextMarker: string;
  /** True if the range ended before the page was full. */
  readonly rangeEnded: boolean;
}

export interface PageReader<P extends PageOfRange> {
  readonly read: (outcome: Outcome<ResultKind>) => Parsed<P>;
  /** Adds what is new; how many that is. */
  readonly take: (page: P) => number;
  /** Returns the first name of a page that would be new. */
  readonly first: (page: P) => string | undefined;
}

/** Asks range after range until the page is full or nothing follows. Returns the marker of the next page. */
export async function overRanges<P extends PageOfRange>(
  router: Router,
  kind: (maxResults: number) => OperationKind,
  maxResults: number,
  limits: CallLimits,
  page: PageReader<P>,
): Promise<Parsed<string>> {
  let route = router.routeOf(kind(maxResults));
  for (let left = maxResults; ; ) {
    // A full page whose range ended: a little is asked of the next one, to learn where the next page starts.
    const answer = await router.executeAt(route, kind(left === 0 ? 2 : left), limits);
    if (!answer.ok) return { ok: false, error: restErrorOf(answer.failure) };
    const { result, range } = answer.value;
    const found = page.read(ok(result));
    if (!found.ok) return found;
    if (left === 0) {
      const first = page.first(found.value);
      if (first !== undefined) return parsed(first);
    } else {
      left -= page.take(found.value);
      if (found.value.nextMarker !== "") return parsed(found.value.nextMarker);
    }
    if (!found.value.rangeEnded || range.high.length === 0) return parsed("");
    route = { table: route.table, key: range.high };
  }
}
