/** Counts what containers hold by listing them, because the service keeps no sums. */
import type { Usage, UsagePage } from "@stamp/console-page";
import type { DataClients } from "../console/data/clients.ts";

/** Entries of one answer of the service. */
const pageMax = 2_000;

/**
 * Counts a page of the entries of a container. `after`: mark of the page before; empty for the first. Bytes are those of contents: copies on
 * other nodes, rows and checksums come on top.
 */
export async function usagePage(
  clients: Pick<DataClients, "container">,
  { account, container, after }: { readonly account: string; readonly container: string; readonly after: string },
  abortSignal: AbortSignal,
): Promise<UsagePage> {
  const client = await clients.container(account, container);
  const all = { abortSignal, includeSnapshots: true, includeVersions: true, includeDeleted: true };
  const paging = { maxPageSize: pageMax, ...(after === "" ? {} : { continuationToken: after }) };
  const page = await client.listBlobsFlat(all).byPage(paging).next();
  const counted = { blobs: 0, bytes: 0, kept: 0, keptBytes: 0 };
  const listed = page.done === true ? undefined : page.value;
  for (const { snapshot, versionId, isCurrentVersion, deleted, properties } of listed?.segment.blobItems ?? []) {
    const bytes = properties.contentLength ?? 0;
    const isKept = snapshot !== undefined || deleted === true || (versionId !== undefined && isCurrentVersion !== true);
    counted[isKept ? "kept" : "blobs"]++;
    counted[isKept ? "keptBytes" : "bytes"] += bytes;
  }
  return { ...counted, next: listed?.continuationToken || null };
}

export interface ContainerUsage extends Usage {
  readonly container: string;
}

/** Counts all containers of an account, or the one that is named. */
export async function* usageOf(
  clients: Pick<DataClients, "blobs" | "container">,
  account: string,
  only: string | undefined,
  abortSignal: AbortSignal,
): AsyncGenerator<ContainerUsage, undefined> {
  for await (const container of only === undefined ? namesOf(clients, account, abortSignal) : [only]) {
    const sum = { container, blobs: 0, bytes: 0, kept: 0, keptBytes: 0 };
    for (let after: string | null = ""; after !== null; ) {
      const page: UsagePage = await usagePage(clients, { account, container, after }, abortSignal);
      for (const name of ["blobs", "bytes", "kept", "keptBytes"] as const) sum[name] += page[name];
      after = page.next;
    }
    yield sum;
  }
}

async function* namesOf(clients: Pick<DataClients, "blobs">, account: string, abortSignal: AbortSignal): AsyncGenerator<string, undefined> {
  const service = await clients.blobs(account);
  for await (const { name } of service.listContainers({ abortSignal })) yield name;
}
