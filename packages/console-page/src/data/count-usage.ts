/** Counts containers one after another, page by page. */
import type { DataSource, Usage } from "./data-model.ts";

interface Counted extends Usage {
  readonly container: string;
}

/** Yields what is counted so far after each page. Ends when the signal is aborted. */
export async function* usageOfContainers(
  data: Pick<DataSource, "containers" | "usage">,
  account: string,
  signal: AbortSignal,
): AsyncGenerator<readonly Counted[], undefined> {
  const rows: Counted[] = [];
  for (let after: string | null = ""; after !== null && !signal.aborted; ) {
    const { items, next } = await data.containers(account, after);
    for (const { name: container } of items) {
      let sum: Counted = { container, blobs: 0, bytes: 0, kept: 0, keptBytes: 0 };
      rows.push(sum);
      for (let mark: string | null = ""; mark !== null && !signal.aborted; ) {
        const page = await data.usage(account, container, mark);
        sum = {
          container,
          blobs: sum.blobs + page.blobs,
          bytes: sum.bytes + page.bytes,
          kept: sum.kept + page.kept,
          keptBytes: sum.keptBytes + page.keptBytes,
        };
        rows[rows.length - 1] = sum;
        mark = page.next;
        yield [...rows];
      }
    }
    after = next;
  }
}
