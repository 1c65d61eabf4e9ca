/**
 * The largest requests that a client may send, and larger ones that are refused. Each says what must be there first. Sizes shrink with
 * `scale`, where filling takes long.
 */
import { BlobClient, type BlobResult } from "@stamp/drills";
import { SignedClient } from "../signed-client.ts";

export interface TurnsAnswer {
  readonly status: number;
}

export interface Input {
  readonly name: string;
  /** Expected status; `false` if this benchmark does not check it. */
  readonly status: number | false;
  /** Prepares an attempt, outside of the measurement. */
  readonly ready?: (attempt: number) => Promise<unknown>;
  /** Prepares the stamp once, before the first request. */
  readonly prepare?: () => Promise<void>;
  readonly ask: (attempt: number) => Promise<TurnsAnswer>;
}

const container = "turns";
const connectionsMax = 32;

export async function many(count: number, each: (at: number) => Promise<TurnsAnswer>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) {
      for (let tries = 1; ; tries++) {
        const { status } = await each(at);
        if (status < 300) break;
        if (status !== 503 && status !== 500 && status !== 0) throw new Error(`filling: ${status} at ${at}`);
        if (tries === 50) throw new Error(`filling: ${status} again and again`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  };
  await Promise.all(Array.from({ length: connectionsMax }, worker));
}

export class Inputs {
  readonly #blob: BlobClient;
  readonly #table: SignedClient;
  readonly #queue: SignedClient;
  readonly #scale: number;

  constructor(connectionString: string, scale: number) {
    this.#blob = BlobClient.fromConnectionString(connectionString, { connectionsMax, timeoutMs: 120_000 });
    this.#table = new SignedClient(connectionString, "table");
    this.#queue = new SignedClient(connectionString, "queue");
    this.#scale = scale;
  }

  close(): void {
    this.#blob.close();
    this.#table.close();
    this.#queue.close();
  }

  all(): readonly Input[] {
    return [
      ...this.#blockLists(),
      ...this.#appended(),
      ...this.#pages(),
      ...this.#lists(),
      ...this.#documents(),
      ...this.#tables(),
      ...this.#queues(),
    ];
  }

  async begin(): Promise<void> {
    await this.#call("PUT", `/${container}?restype=container`);
    await this.#call("PUT", `/${container}/warm`, { "x-ms-blob-type": "BlockBlob" }, Buffer.alloc(100));
    await this.#table.call("POST", "/Tables", json, Buffer.from(JSON.stringify({ TableName: "turns" })));
    await this.#queue.call("PUT", "/turns", {}, Buffer.alloc(0));
  }

  #scaled(count: number): number {
    return Math.ceil(count * this.#scale);
  }

  async #call(
    method: string,
    target: string,
    headers: Readonly<Record<string, string>> = {},
    body?: Uint8Array,
  ): Promise<TurnsAnswer & { readonly result: BlobResult }> {
    const result = await this.#blob.call(method, target, headers, body);
    return { status: result.kind === "answer" ? result.status : 0, result };
  }

  #blockLists(): readonly Input[] {
    // A list may name a block again and again: it has its largest size at any scale.
    const blocks = 50_000;
    const staged = this.#scaled(blocks);
    const list = (ids: Iterable<string>, kind = "Latest"): Buffer =>
      Buffer.from(`<?xml version="1.0"?><BlockList>${Array.from(ids, (id) => `<${kind}>${id}</${kind}>`).join("")}</BlockList>`);
    const ids = (count: number, bytes: number): string[] =>
      Array.from({ length: count }, (_, i) => Buffer.from(String(i).padStart(bytes, "-")).toString("base64"));
    const put = (blob: string, body: Buffer) => () => this.#call("PUT", `/${container}/${blob}?comp=blocklist`, {}, body);
    const own = ids(staged, 48);
    const garbage = {
      "one text": `<BlockList><Latest>${"QUFB".repeat(1_900_000)}`,
      "one comment": `<BlockList><!--${"-x".repeat(3_800_000)}--></BlockList>`,
      attributes: `<BlockList ${Array.from({ length: 550_000 }, (_, i) => `a${i}=""`).join(" ")}/>`,
      comments: `<BlockList>${"<!---->".repeat(1_080_000)}</BlockList>`,
      references: `<BlockList><Latest>${"&#65;".repeat(1_500_000)}</Latest></BlockList>`,
      "document type": `<!DOCTYPE a [${"<!ENTITY a 'x'>".repeat(480_000)}]><BlockList/>`,
    };
    return [
      {
        name: "block list, 50,000 ids that are not there",
        status: 400,
        ask: put("none", list(ids(50_000, 64), "Uncommitted")),
      },
      { name: "block list, 350,000 ids (7.5 MB)", status: 413, ask: put("none", list(ids(350_000, 3))) },
      ...Object.entries(garbage).map(([what, text]) => ({
        name: `block list, 7.6 MB of ${what}`,
        status: what === "comments" ? 201 : 400,
        ask: put("garbage", Buffer.from(text)),
      })),
      {
        name: `block list, ${blocks} times one of ${staged} new blocks`,
        status: 201,
        prepare: () =>
          many(staged, (at) =>
            this.#call(
              "PUT",
              `/${container}/blocks?comp=block&blockid=${encodeURIComponent(own[at] as string)}`,
              {},
              Buffer.alloc(100, at),
            ),
          ),
        ask: put("blocks", list(Array.from({ length: blocks }, (_, i) => own[i % staged] as string))),
      },
      {
        name: `get block list, ${blocks} blocks`,
        status: 200,
        ask: () => this.#call("GET", `/${container}/blocks?comp=blocklist&blocklisttype=all`),
      },
      { name: `get blob, ${blocks} blocks of 100 bytes`, status: 200, ask: () => this.#call("GET", `/${container}/blocks`) },
      { name: `snapshot, ${blocks} blocks`, status: 201, ask: () => this.#call("PUT", `/${container}/blocks?comp=snapshot`) },
      { name: `copy blob, ${blocks} blocks`, status: 202, ask: (attempt) => this.#copy("blocks", `copied-${attempt}`) },
      {
        name: `delete, ${blocks} blocks`,
        status: 202,
        ready: (attempt) => this.#copied("blocks", `gone-${attempt}`),
        ask: (attempt) => this.#call("DELETE", `/${container}/gone-${attempt}`),
      },
    ];
  }

  #copy(from: string, to: string): Promise<TurnsAnswer> {
    const source = new URL(this.#table.path, `http://${this.#table.host}:${this.#blobPort}`).href;
    return this.#call("PUT", `/${container}/${to}`, { "x-ms-copy-source": `${source}/${container}/${from}` });
  }

  /** Copies a blob, and waits until the copy is whole. */
  async #copied(from: string, to: string): Promise<void> {
    await this.#copy(from, to);
    for (let tries = 0; tries < 200; tries++) {
      const { result } = await this.#call("HEAD", `/${container}/${to}`);
      if (result.kind === "answer" && result.headers["x-ms-copy-status"] !== "pending") return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`the copy ${to} does not end`);
  }

  get #blobPort(): number {
    return this.#queue.port - 1;
  }

  #appended(): readonly Input[] {
    const appends = this.#scaled(50_000);
    return [
      {
        name: `get append blob, ${appends} appends of 100 bytes`,
        status: 200,
        prepare: async () => {
          await this.#call("PUT", `/${container}/appended`, { "x-ms-blob-type": "AppendBlob" });
          await many(appends, (at) => this.#call("PUT", `/${container}/appended?comp=appendblock`, {}, Buffer.alloc(100, at)));
        },
        ask: () => this.#call("GET", `/${container}/appended`),
      },
      { name: `copy append blob, ${appends} appends`, status: 202, ask: (attempt) => this.#copy("appended", `appended-${attempt}`) },
      {
        name: `delete append blob, ${appends} appends`,
        status: 202,
        ready: (attempt) => this.#copied("appended", `gone-appended-${attempt}`),
        ask: (attempt) => this.#call("DELETE", `/${container}/gone-appended-${attempt}`),
      },
    ];
  }

  #pages(): readonly Input[] {
    const pages = this.#scaled(50_000);
    const stride = 1024 * 1024;
    return [
      {
        name: `get page ranges, ${pages} ranges in 1 TiB`,
        status: 200,
        prepare: async () => {
          await this.#call("PUT", `/${container}/pages`, { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": String(1024 ** 4) });
          await many(pages, (at) => {
            const range = `bytes=${at * stride}-${at * stride + 511}`;
            return this.#call(
              "PUT",
              `/${container}/pages?comp=page`,
              { "x-ms-page-write": "update", "x-ms-range": range },
              Buffer.alloc(512, at),
            );
          });
        },
        ask: () => this.#call("GET", `/${container}/pages?comp=pagelist`),
      },
      {
        name: `get page ranges since a snapshot, ${pages} ranges`,
        status: 200,
        ask: async () => {
          const made = await this.#call("PUT", `/${container}/pages?comp=snapshot`);
          const snapshot = made.result.kind === "answer" ? made.result.headers["x-ms-snapshot"] : "";
          return this.#call("GET", `/${container}/pages?comp=pagelist&prevsnapshot=${encodeURIComponent(snapshot ?? "")}`);
        },
      },
      {
        name: "get page blob, 100 MiB with holes",
        status: 206,
        ask: () => this.#call("GET", `/${container}/pages`, { "x-ms-range": "bytes=0-104857599" }),
      },
    ];
  }

  #lists(): readonly Input[] {
    const blobs = this.#scaled(5_000);
    const metadata = Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`x-ms-meta-m${i}`, "v".repeat(1_000)]));
    const tags = Array.from({ length: 10 }, (_, i) => `tag${i}=${"t".repeat(200)}`).join("&");
    const boundary = "batch_turns";
    const batch = (): Buffer => {
      const one = (i: number): string =>
        `--${boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: ${i}\r\n\r\n` +
        `DELETE ${this.#table.path}/${container}/none-${i} HTTP/1.1\r\nx-ms-filler: ${"f".repeat(15_000)}\r\nContent-Length: 0\r\n\r\n\r\n`;
      return Buffer.from(`${Array.from({ length: 256 }, (_, i) => one(i)).join("")}--${boundary}--\r\n`);
    };
    return [
      {
        name: `list of ${blobs} blobs with 7 KiB of metadata and ten tags each`,
        status: 200,
        prepare: () =>
          many(blobs, (at) =>
            this.#call("PUT", `/${container}/l${at}`, { "x-ms-blob-type": "BlockBlob", "x-ms-tags": tags, ...metadata }, Buffer.alloc(1)),
          ),
        ask: () => this.#call("GET", `/${container}?restype=container&comp=list&prefix=l&maxresults=5000&include=metadata,tags`),
      },
      {
        name: `find by tags, ${blobs} blobs`,
        status: 200,
        ask: () => this.#call("GET", `/?comp=blobs&maxresults=5000&where=${encodeURIComponent(`"tag0" = '${"t".repeat(200)}'`)}`),
      },
      {
        name: "batch of 256 requests, 3.9 MB",
        status: 202,
        ask: () => this.#call("POST", "/?comp=batch", { "content-type": `multipart/mixed; boundary=${boundary}` }, batch()),
      },
      {
        // The service answers a batch that it can't read with 202 and one part, which says why.
        name: "a batch of 4 MB without an end",
        status: 202,
        ask: () =>
          this.#call(
            "POST",
            "/?comp=batch",
            { "content-type": `multipart/mixed; boundary=${boundary}` },
            Buffer.from(`--${boundary}\r\n`.repeat(250_000)),
          ),
      },
    ];
  }

  #documents(): readonly Input[] {
    const rule = `<CorsRule><AllowedOrigins>${"http://a.b,".repeat(20)}http://c</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>1</MaxAgeInSeconds><ExposedHeaders>a</ExposedHeaders><AllowedHeaders>a</AllowedHeaders></CorsRule>`;
    const put = (target: string, text: string) => () => this.#call("PUT", target, { "content-type": "application/xml" }, Buffer.from(text));
    return [
      {
        name: "service properties, 64 KiB of rules",
        status: 400,
        ask: put(
          "/?restype=service&comp=properties",
          `<StorageServiceProperties><Cors>${rule.repeat(130)}</Cors></StorageServiceProperties>`,
        ),
      },
      {
        name: "service properties, 64 KiB of elements",
        status: 400,
        ask: put("/?restype=service&comp=properties", `<r>${"<a/>".repeat(9_900)}</r>`),
      },
      {
        name: "container ACL, 64 KiB of identifiers",
        status: 400,
        ask: put(
          `/${container}?restype=container&comp=acl`,
          `<SignedIdentifiers>${"<SignedIdentifier><Id>a</Id></SignedIdentifier>".repeat(1_300)}</SignedIdentifiers>`,
        ),
      },
      {
        name: "tags, 64 KiB",
        status: 400,
        ask: put(
          `/${container}/warm?comp=tags`,
          `<Tags><TagSet>${"<Tag><Key>a</Key><Value>b</Value></Tag>".repeat(1_600)}</TagSet></Tags>`,
        ),
      },
      {
        name: "a URL of 14 KiB of parameters",
        status: false,
        ask: () => this.#call("GET", `/${container}?restype=container&${Array.from({ length: 2_000 }, (_, i) => `p${i}=%20`).join("&")}`),
      },
      {
        name: "headers of 14 KiB",
        status: 400,
        ask: () =>
          this.#call(
            "PUT",
            `/${container}/warm`,
            { "x-ms-blob-type": "BlockBlob", ...Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`x-ms-meta-${i}`, "v"])) },
            Buffer.alloc(1),
          ),
      },
    ];
  }

  #tables(): readonly Input[] {
    const wide = (rowKey: string, properties: number, characters: number): Buffer =>
      Buffer.from(
        JSON.stringify({
          PartitionKey: "p",
          RowKey: rowKey,
          ...Object.fromEntries(Array.from({ length: properties }, (_, i) => [`P${i}`, "é".repeat(characters)])),
        }),
      );
    const head = "--changes\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n";
    const transaction = (attempt: number): Buffer => {
      const one = (i: number): string =>
        `${head}PUT http://${this.#table.host}:${this.#table.port}${this.#table.path}/turns(PartitionKey='t',RowKey='${i}') HTTP/1.1\r\n` +
        `Content-Type: application/json\r\nAccept: application/json;odata=nometadata\r\nPrefer: return-no-content\r\n\r\n` +
        `{"A":"${String(attempt).repeat(20_000)}","B":"${"b".repeat(20_000)}"}\r\n`;
      return Buffer.from(
        `--batch\r\nContent-Type: multipart/mixed; boundary=changes\r\n\r\n${Array.from({ length: 100 }, (_, i) => one(i)).join("")}--changes--\r\n--batch--\r\n`,
      );
    };
    const query = (name: string, parameters: string, status: number | false = 200): Input => ({
      name,
      status,
      ask: () => this.#table.call("GET", `/turns()?${parameters}`, { accept: "application/json;odata=fullmetadata" }),
    });
    return [
      {
        name: "entity of 1 MB, 252 properties",
        status: 204,
        ask: () => this.#table.call("PUT", "/turns(PartitionKey='p',RowKey='wide')", json, wide("wide", 252, 2_000)),
      },
      {
        name: "get entity of 1 MB",
        status: 200,
        ask: () => this.#table.call("GET", "/turns(PartitionKey='p',RowKey='wide')", { accept: "application/json;odata=fullmetadata" }),
      },
      {
        name: "entity of 4 MB of JSON, refused",
        status: 400,
        ask: () =>
          this.#table.call(
            "PUT",
            "/turns(PartitionKey='p',RowKey='x')",
            json,
            Buffer.from(`{${Array.from({ length: 300_000 }, (_, i) => `"P${i}":1`).join(",")}}`),
          ),
      },
      {
        name: "JSON nested 1,000,000 deep",
        status: 400,
        ask: () => this.#table.call("PUT", "/turns(PartitionKey='p',RowKey='x')", json, Buffer.from(`{"A":${"[".repeat(1_000_000)}`)),
      },
      {
        name: "transaction of 100 entities, 4 MB",
        status: 202,
        ask: (attempt) =>
          this.#table.call("POST", "/$batch", { ...json, "content-type": "multipart/mixed; boundary=batch" }, transaction(attempt)),
      },
      query("query of 100 entities, 4 MB", "$filter=PartitionKey%20eq%20't'"),
      query(
        "filter of 1,000 comparisons, one entity of 1 MB",
        `$filter=${encodeURIComponent(Array.from({ length: 700 }, (_, i) => `P${i}%20eq%201`.replaceAll("%20", " ")).join(" or "))}`,
        false,
      ),
      query("filter nested 5,000 deep", `$filter=${"(".repeat(5_000)}A%20eq%201${")".repeat(5_000)}`, 400),
      query("select of 3,000 names", `$select=${Array.from({ length: 3_000 }, (_, i) => `P${i}`).join(",")}`, false),
      {
        name: "query of 1,000 entities of 252 properties, 3.9 MB",
        status: 200,
        prepare: () =>
          many(1_000, (at) => {
            const body = JSON.stringify(Object.fromEntries(Array.from({ length: 252 }, (_, i) => [`P${i}`, i])));
            return this.#table.call("PUT", `/turns(PartitionKey='w',RowKey='${at}')`, json, Buffer.from(body));
          }),
        ask: () => this.#table.call("GET", "/turns()?$filter=PartitionKey%20eq%20'w'", { accept: "application/json;odata=fullmetadata" }),
      },
      query(
        "filter over 1,000 wide entities that finds none",
        `$filter=${encodeURIComponent(`PartitionKey eq 'w' and not (${Array.from({ length: 15 }, (_, i) => `P${i * 10} eq ${i * 10}`).join(" or ")})`)}`,
        false,
      ),
    ];
  }

  #queues(): readonly Input[] {
    const put = (text: string): Promise<TurnsAnswer> =>
      this.#queue.call(
        "POST",
        "/turns/messages",
        { "content-type": "application/xml" },
        Buffer.from(`<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`),
      );
    return [
      { name: "message of 64 KiB, each byte a reference", status: 201, ask: () => put("&#x41;".repeat(64 * 1024)) },
      {
        name: "get 32 messages of 64 KiB",
        status: 200,
        prepare: () => many(120, () => put("&lt;".repeat(64 * 1024))),
        ask: () => this.#queue.call("GET", "/turns/messages?numofmessages=32", {}),
      },
    ];
  }
}

const json = { accept: "application/json;odata=nometadata", "content-type": "application/json" };
