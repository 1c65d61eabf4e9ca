/**
 * Listing containers and blobs, in key order, a page at a time. A page ends when it is full, when nothing follows, or with the range that
 * is asked; the reader then asks the next range. Rows of a blob behind its head are stepped over by seeking.
 */
import { compareBytes, concatBytes } from "@stamp/base";
import { afterPrefix, blobPrefix, blobsPrefix, containersPrefix, headRow, stagingRow } from "../object-keys.ts";
import type { Blob, Container, ListBlobs, ListContainers, ListedBlob, OperationValue } from "../operation.ts";
import { answer, intact, type Plan, type PlanContext, type RowEntry, scanRows } from "../plan.ts";
import { routeOf } from "../routing.ts";
import { decodeKey, type KeyComponent } from "../rows/key.ts";
import { blobOf, containerOf, decodeContainer, decodeHead, decodeStaging, uncommittedBlobOf } from "./blob-rows.ts";

export const listPageMax = 5_000;
export const listBatchLimits: { readonly rowsMax: number; readonly bytesMax: number } = { rowsMax: 200, bytesMax: 512 * 1024 };

export const pageSize = (maxResults: number): number => (maxResults < 1 ? listPageMax : Math.min(maxResults, listPageMax));

export const successor = (key: Uint8Array): Uint8Array => concatBytes([key, Uint8Array.of(0)]);
const later = (a: Uint8Array, b: Uint8Array): Uint8Array => (compareBytes(a, b) >= 0 ? a : b);

export interface Span {
  readonly low: Uint8Array;
  readonly high: Uint8Array;
  /** The listing goes on behind the range that is asked. */
  readonly cut: boolean;
}

/** What this range can say of the keys from `low` to `high`. */
export function spanOf(context: PlanContext, low: Uint8Array, high: Uint8Array): Span {
  const { range } = context;
  const cut = range.high.length > 0 && compareBytes(range.high, high) < 0;
  return { low: later(low, range.low), high: cut ? range.high : high, cut };
}

export function* listContainers(value: ListContainers, context: PlanContext): Plan {
  const start = routeOf(context.rules, { case: "listContainers", value }).key;
  const span = spanOf(context, start, afterPrefix(containersPrefix(value.account, value.prefix)));
  const containers: Container[] = [];
  const size = pageSize(value.maxResults);
  for (let low = span.low, more = true; more; ) {
    const page = yield* scanRows(low, span.high, {
      ...listBatchLimits,
      rowsMax: Math.min(listBatchLimits.rowsMax, size - containers.length + 1),
    });
    for (const row of page.rows) {
      const name = String(intact(decodeKey(row.key))[1]?.[1]);
      if (containers.length === size) return answer({ case: "containers", value: { containers, nextMarker: name, rangeEnded: false } });
      containers.push(containerOf(name, decodeContainer(row.value)));
      low = successor(row.key);
    }
    more = page.more;
  }
  return answer({ case: "containers", value: { containers, nextMarker: "", rangeEnded: span.cut } });
}

export function* listBlobs(value: OperationValue<"listBlobs">, context: PlanContext): Plan {
  const start = routeOf(context.rules, { case: "listBlobs", value }).key;
  const span = spanOf(context, start, afterPrefix(blobsPrefix(context.rules, value, value.prefix)));
  const entries: ListedBlob[] = [];
  const size = pageSize(value.maxResults);
  for (let low = span.low, more = true; more; ) {
    const page = yield* scanRows(low, span.high, listBatchLimits);
    for (const row of page.rows) {
      if (compareBytes(row.key, low) < 0) continue;
      const { entry, next } = look(value, context, row);
      low = next;
      if (!entry) continue;
      if (entries.length === size) {
        const nextMarker = entry.case === "blob" ? entry.value.name : entry.value;
        return answer({ case: "blobs", value: { entries, nextMarker, rangeEnded: false } });
      }
      entries.push(entry);
    }
    more = page.more;
  }
  return answer({ case: "blobs", value: { entries, nextMarker: "", rangeEnded: span.cut } });
}

/** What a row adds to the listing, and the first key that may add something after it. */
function look(value: ListBlobs, context: PlanContext, row: RowEntry): { entry: ListedBlob | undefined; next: Uint8Array } {
  const components = intact(decodeKey(row.key));
  const name = String(components[1]?.[3]);
  const kind = (components[2] as KeyComponent)[1];
  const afterBlob = afterPrefix(blobPrefix(context.rules, { ...value, blob: name }));
  const visible = kind === headRow || (kind === stagingRow && value.includeUncommitted);
  if (!visible) return { entry: undefined, next: afterBlob };
  const common = commonPrefix(value, name);
  if (common !== undefined) {
    return { entry: { case: "prefix", value: common }, next: afterPrefix(blobsPrefix(context.rules, value, common)) };
  }
  return { entry: { case: "blob", value: listedBlob(value, name, kind === headRow, row.value) }, next: afterBlob };
}

function commonPrefix(value: ListBlobs, name: string): string | undefined {
  if (value.delimiter === "") return undefined;
  const at = name.indexOf(value.delimiter, value.prefix.length);
  return at < 0 ? undefined : name.slice(0, at + value.delimiter.length);
}

function listedBlob(value: ListBlobs, name: string, committed: boolean, row: Uint8Array): Blob {
  if (!committed) return uncommittedBlobOf(name, decodeStaging(row));
  const blob = blobOf(name, decodeHead(row));
  return value.includeMetadata ? blob : { ...blob, metadata: {} };
}
