/** The operations of the outcome tables, and what runs a row of them. */
import { randomUUID } from "node:crypto";
import type { BlobClient } from "@azure/storage-blob";
import { blockId, type Clients, readableUrl } from "./target.ts";

export type Headers = Readonly<Record<string, string>>;
export type Kind = "BlockBlob" | "AppendBlob" | "PageBlob";
export interface Wanted {
  readonly method: string;
  /** Behind the blob's path. */
  readonly query?: string;
  readonly headers?: Headers;
  readonly body?: string | Uint8Array;
}
export interface Operation extends Wanted {
  readonly name: string;
  readonly kind?: Kind;
  /** 304 where a write answers 412. */
  readonly reads?: boolean;
  /** The code of a condition of the destination of copies. */
  readonly code?: string;
  /** Of `x-ms-copy-source`. */
  readonly copies?: boolean;
  /** Conditions on tags are refused. */
  readonly untagged?: boolean;
  /** Before the names of conditions. */
  readonly prefix?: string;
}

export const page: Uint8Array<ArrayBuffer> = new Uint8Array(512).fill(7);
export const list: string = `<?xml version="1.0" encoding="utf-8"?><BlockList><Latest>${blockId(1)}</Latest></BlockList>`;
export const tags: string = '<?xml version="1.0" encoding="utf-8"?><Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tags>';
export const manyTags: string = tags.replace(
  /<Tag>.*<\/Tag>/,
  Array.from({ length: 11 }, (_, i) => `<Tag><Key>k${i}</Key><Value>1</Value></Tag>`).join(""),
);
export const block: string = `comp=block&blockid=${encodeURIComponent(blockId(1))}`;

export const reads: readonly Operation[] = [
  { name: "Get Blob", method: "GET", reads: true },
  { name: "Get Blob Properties", method: "HEAD", reads: true },
  { name: "Get Blob Metadata", method: "GET", query: "comp=metadata", reads: true },
  { name: "Get Page Ranges", method: "GET", query: "comp=pagelist", kind: "PageBlob", reads: true },
];
export const writes: readonly Operation[] = [
  { name: "Put Blob", method: "PUT", headers: { "x-ms-blob-type": "BlockBlob" }, body: "new" },
  { name: "Put Blob (append)", method: "PUT", kind: "AppendBlob", headers: { "x-ms-blob-type": "AppendBlob" }, body: "" },
  {
    name: "Put Blob (page)",
    method: "PUT",
    kind: "PageBlob",
    headers: { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024" },
    body: "",
  },
  { name: "Put Block List", method: "PUT", query: "comp=blocklist", body: list },
  { name: "Append Block", method: "PUT", query: "comp=appendblock", kind: "AppendBlob", body: "x" },
  { name: "Append Blob Seal", method: "PUT", query: "comp=seal", kind: "AppendBlob", body: "", untagged: true },
  {
    name: "Put Page",
    method: "PUT",
    query: "comp=page",
    kind: "PageBlob",
    headers: { "x-ms-page-write": "update", "x-ms-range": "bytes=0-511" },
    body: page,
  },
  {
    name: "Put Page (clear)",
    method: "PUT",
    query: "comp=page",
    kind: "PageBlob",
    headers: { "x-ms-page-write": "clear", "x-ms-range": "bytes=0-511" },
    body: "",
  },
  { name: "Set Blob Metadata", method: "PUT", query: "comp=metadata", headers: { "x-ms-meta-a": "1" }, body: "" },
  { name: "Set Blob Properties", method: "PUT", query: "comp=properties", headers: { "x-ms-blob-content-type": "x/y" }, body: "" },
  {
    name: "Set Blob Properties (resize)",
    method: "PUT",
    query: "comp=properties",
    kind: "PageBlob",
    headers: { "x-ms-blob-content-length": "2048" },
    body: "",
  },
  { name: "Delete Blob", method: "DELETE" },
  { name: "Copy Blob", method: "PUT", copies: true, body: "", code: "TargetConditionNotMet" },
  {
    name: "Copy Blob From URL",
    method: "PUT",
    copies: true,
    headers: { "x-ms-requires-sync": "true" },
    body: "",
  },
  { name: "Put Blob From URL", method: "PUT", copies: true, headers: { "x-ms-blob-type": "BlockBlob" }, body: "" },
  { name: "Append Block From URL", method: "PUT", query: "comp=appendblock", kind: "AppendBlob", copies: true, body: "" },
];
/** Conditions on snapshots and leases are those of writes, but neither changes the blob. */
export const others: readonly Operation[] = [
  { name: "Snapshot Blob", method: "PUT", query: "comp=snapshot", body: "" },
  {
    name: "Lease Blob",
    method: "PUT",
    query: "comp=lease",
    headers: { "x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1" },
    body: "",
  },
];
/** Tags have no ETag and no time: conditions are those of the blob, by names of their own. */
export const onTags: readonly Operation[] = [
  { name: "Get Blob Tags", method: "GET", query: "comp=tags", reads: true, prefix: "x-ms-blob-" },
  { name: "Set Blob Tags", method: "PUT", query: "comp=tags", body: tags, prefix: "x-ms-blob-" },
];
export const putBlock: Operation = { name: "Put Block", method: "PUT", query: block, body: "x" };
export const putBlockFromUrl: Operation = { name: "Put Block From URL", method: "PUT", query: block, copies: true, body: "" };
/** Their conditions on ETags and times are in no table. */
export const leasedOnly: readonly Operation[] = [
  putBlock,
  putBlockFromUrl,
  { name: "Set Blob Tier", method: "PUT", query: "comp=tier", headers: { "x-ms-access-tier": "Cool" }, body: "" },
];

export interface MadeBlob {
  /** Behind the account. */
  readonly path: string;
  readonly etag: string;
  readonly modified: Date;
  readonly client: BlobClient;
}

/** Rows have a blob each, so they don't have to wait for each other. */
export const atOnce = <T, R>(rows: readonly T[], run: (row: T) => Promise<R>): Promise<R[]> => Promise.all(rows.map(run));

export class OutcomeRows {
  readonly #clients: () => Clients;

  constructor(clients: () => Clients) {
    this.#clients = clients;
  }

  /** A blob with what the operations need, and what is known of it. */
  async made(container: string, kind: Kind = "BlockBlob"): Promise<MadeBlob> {
    const client = this.#clients().service.getContainerClient(container);
    const name = randomUUID();
    const path = `/${container}/${name}`;
    if (kind === "AppendBlob") await client.getAppendBlobClient(name).create();
    else if (kind === "PageBlob") {
      await client.getPageBlobClient(name).create(1024);
      await client.getPageBlobClient(name).uploadPages(page, 0, 512);
    } else {
      await client.getBlockBlobClient(name).upload("old", 3);
      await client.getBlockBlobClient(name).stageBlock(blockId(1), "x", 1);
    }
    const { etag = "", lastModified } = await client.getBlobClient(name).getProperties();
    return { path, etag, modified: lastModified as Date, client: client.getBlobClient(name) };
  }

  /** "done", or status and code. */
  async told(operation: Operation, path: string, headers: Headers, source: string): Promise<string> {
    const { method, query, body } = operation;
    const from: Headers = operation.copies ? { "x-ms-copy-source": source } : {};
    const sent = { ...(operation.headers ?? {}), ...from, ...headers };
    const answer = await this.#clients().raw(method, `${path}${query ? `?${query}` : ""}`, {
      headers: sent,
      ...(body === undefined ? {} : { body }),
    });
    await answer.arrayBuffer();
    return answer.ok ? "done" : `${answer.status} ${answer.headers.get("x-ms-error-code") ?? ""}`.trim();
  }

  /** URL of a blob that copies can have as their source. */
  async sourceIn(container: string): Promise<string> {
    const source = this.#clients().service.getContainerClient(container).getBlockBlobClient("source");
    await source.upload("source", 6);
    return readableUrl(source);
  }

  /** Of a blob or a container. */
  async lease(path: string, headers: Headers): Promise<string> {
    return this.told({ name: "Lease Blob", method: "PUT", query: "comp=lease", body: "" }, path, headers, "");
  }
}
