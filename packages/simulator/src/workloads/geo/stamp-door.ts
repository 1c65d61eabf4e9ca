/**
 * Way of one client to an account at one stamp, over HTTP: by the account's own name, or by the name of its copy. A name of the workload is a
 * PartitionName: entities of one PartitionKey ("p…"), or a blob ("b…"). Its state is a write; the rows of a blob are its last row only.
 */
import { parseRfc1123, timestampOfEtag, toBase64 } from "@stamp/azure-rest";
import { equalBytes, fromUtf8, utf8 } from "@stamp/base";
import type { World } from "@stamp/ports";
import { BrokenPromise, type Simulation } from "@stamp/virtual-time";
import { HttpClient, type Received } from "../clients/http-client.ts";
import { changeRequest, entityPath, lengthOf, queryPage, transaction } from "../clients/table-http.ts";
import type { Tally } from "../run/workload.ts";
import { type GeoHistory, lastRow, type Rows } from "./history.ts";
import type { StampName, TwoStamps } from "./location.ts";

export const tableName = "pairs";
const container = "blobs";
export const rowNames = ["r0", "r1", "r2", "r3", "r4"];
export const isBlob = (name: string): boolean => name.startsWith("b");

interface ShownRow {
  readonly RowKey: string;
  readonly write: number;
  readonly pad: string;
  readonly "odata.etag": string;
}

/** Parts of a run that all its clients share. */
export interface Scene {
  readonly sim: Simulation;
  readonly tally: Tally;
  readonly history: GeoHistory;
  readonly place: TwoStamps;
  /** Largest size of a row, in bytes; a blob is up to about five times as large. */
  readonly padMax: number;
}

/** State of a name as a stamp shows it. `etag` is of the last row; empty: the name has no rows. */
export interface Read {
  readonly id: number;
  readonly etag: string;
}

/** `writtenMs`: Timestamp of the write, in milliseconds since 1970. */
export type Written = { readonly etag: string; readonly writtenMs: number } | "refused" | "unknown";

const padOf = (write: number, row: string, padMax: number): string =>
  `${write}.`.repeat(1 + Math.floor((((write * 7_919 + row.length) % 97) / 97) ** 2 * (padMax / 4)));

/** Returns the bytes of a blob; a third of the writes have two blocks. */
const bodyOf = (write: number, padMax: number): Uint8Array => utf8(`${write},`.repeat(1 + ((write * 7_919) % 97) * Math.ceil(padMax / 80)));
const isOfBlocks = (write: number): boolean => write % 3 === 0;

const codeOf = (received: Received | undefined): string => received?.headers["x-ms-error-code"] ?? "";

const refusals: ReadonlySet<string> = new Set([
  "UpdateConditionNotSatisfied",
  "EntityAlreadyExists",
  "ResourceNotFound",
  "ConditionNotMet",
  "BlobAlreadyExists",
  "BlobNotFound",
]);

/** Returns the timestamp of an ETag, in milliseconds since 1970, rounded down: ticks of 100 ns. */
const timestampMs = (etag: string): number => Number((timestampOfEtag(etag) ?? 0n) / 10_000n);

/** Last-Modified tells whole seconds, rounded down: the blob was written at most this much later. */
const roundedMs = 999;

export const count = (counts: Record<string, number>, what: string, times = 1): void => {
  counts[what] = (counts[what] ?? 0) + times;
};

export class StampDoor {
  readonly stamp: StampName;
  readonly #secondary: boolean;
  readonly #scene: Scene;
  readonly #tables: HttpClient;
  readonly #blobs: HttpClient;

  constructor(scene: Scene, client: string, world: World, stamp: StampName, secondary: boolean) {
    this.stamp = stamp;
    this.#secondary = secondary;
    this.#scene = scene;
    const door = scene.place.door(stamp, secondary);
    this.#tables = new HttpClient(scene.sim, world, client, door, "table");
    this.#blobs = new HttpClient(scene.sim, world, client, door, "blob");
  }

  /** Makes the table and the container. */
  async create(): Promise<boolean> {
    const body = utf8(JSON.stringify({ TableName: tableName }));
    const made = await this.#tables.request("POST", "/Tables", lengthOf(body, "application/json"), body);
    if (made?.status !== 204 && made?.status !== 201 && codeOf(made) !== "TableAlreadyExists") return false;
    const created = await this.#blob("PUT", `/${container}?restype=container`, {});
    return created?.status === 201 || codeOf(created) === "ContainerAlreadyExists";
  }

  /** Returns the state of a name. Undefined: the stamp does not say. */
  async read(name: string): Promise<Read | undefined> {
    const { history, sim, tally } = this.#scene;
    const { stamp } = this;
    const secondary = this.#secondary;
    const question = { name, stamp, secondary, calledMs: sim.nowMs, syncedMs: history.syncedMs, own: history.ownOf(stamp, name) };
    const found = isBlob(name) ? await this.#readBlob(name) : await this.#readEntities(name);
    const what = `read of a ${isBlob(name) ? "blob" : "table"} at the ${secondary ? "secondary" : "primary"}`;
    if (found === undefined) {
      count(tally.counts, `${what} unanswered`);
      return undefined;
    }
    count(tally.counts, `${what} ok`);
    return { id: history.shown(question, found.rows), etag: found.etag };
  }

  async #readEntities(name: string): Promise<{ readonly rows: Rows; readonly etag: string } | undefined> {
    const page = await queryPage<ShownRow>(this.#tables, tableName, `PartitionKey eq '${name}'`, 1_000, "");
    if (!("entities" in page) || page.next !== "") return undefined;
    const rows = new Map<string, number>();
    for (const { RowKey: row, write, pad } of page.entities) {
      if (pad !== padOf(write, row, this.#scene.padMax))
        throw new BrokenPromise(`row ${row} of ${name} at stamp ${this.stamp} is not as write ${write} left it`);
      rows.set(row, write);
    }
    return { rows, etag: page.entities.find(({ RowKey: row }) => row === lastRow)?.["odata.etag"] ?? "" };
  }

  async #readBlob(name: string): Promise<{ readonly rows: Rows; readonly etag: string } | undefined> {
    const received = await this.#blob("GET", `/${container}/${name}`, {});
    if (codeOf(received) === "BlobNotFound") return { rows: new Map(), etag: "" };
    if (received?.status !== 200 || received.short) return undefined;
    const { etag = "", "x-ms-meta-write": write = "" } = received.headers;
    if (!equalBytes(received.body, bodyOf(Number(write), this.#scene.padMax)))
      throw new BrokenPromise(`blob ${name} at stamp ${this.stamp} has other bytes than write ${write} left`);
    return { rows: new Map([[lastRow, Number(write)]]), etag };
  }

  /** Makes the state that write `id` leaves of another one, if the last row has this ETag. */
  write(name: string, id: number, parent: number, etag: string): Promise<Written> {
    const { history } = this.#scene;
    return isBlob(name) ? this.#writeBlob(name, id, etag) : this.#writeEntities(name, etag, history.rowsOf(parent), history.rowsOf(id));
  }

  async #writeEntities(name: string, etag: string, before: Rows, after: Rows): Promise<Written> {
    const requests = [lastRow, ...rowNames].flatMap((row) => {
      const write = after.get(row);
      if (write === before.get(row)) return [];
      const path = entityPath(tableName, name, row);
      if (write === undefined) return [changeRequest("DELETE", path, { "If-Match": "*" })];
      const body = JSON.stringify({ PartitionKey: name, RowKey: row, write, pad: padOf(write, row, this.#scene.padMax) });
      if (row !== lastRow) return [changeRequest("PUT", path, {}, body)];
      return [etag === "" ? changeRequest("POST", tableName, {}, body) : changeRequest("PUT", path, { "If-Match": etag }, body)];
    });
    const answer = await transaction(this.#tables, requests);
    if (!("etags" in answer)) return refusals.has(codeOf(answer.received)) ? "refused" : "unknown";
    const [made = ""] = answer.etags;
    return { etag: made, writtenMs: timestampMs(made) };
  }

  async #writeBlob(name: string, id: number, etag: string): Promise<Written> {
    const condition = etag === "" ? { "if-none-match": "*" } : { "if-match": etag };
    const headers = { ...condition, "x-ms-meta-write": String(id) };
    const body = bodyOf(id, this.#scene.padMax);
    const path = `/${container}/${name}`;
    const received = isOfBlocks(id)
      ? await this.#putBlocks(path, headers, body, id)
      : await this.#blob("PUT", path, { ...headers, "x-ms-blob-type": "BlockBlob" }, body);
    if (received?.status !== 201 || received.short) return refusals.has(codeOf(received)) ? "refused" : "unknown";
    const { etag: made = "", "last-modified": modified = "" } = received.headers;
    return { etag: made, writtenMs: (parseRfc1123(modified) ?? 0) + roundedMs };
  }

  async #putBlocks(path: string, headers: Record<string, string>, body: Uint8Array, id: number): Promise<Received | undefined> {
    const half = Math.ceil(body.length / 2);
    const blocks = [body.subarray(0, half), body.subarray(half)].filter((block) => block.length > 0);
    const ids = blocks.map((_, i) => toBase64(utf8(`${String(id).padStart(6, "0")}-${i}`)));
    for (const [i, block] of blocks.entries()) {
      const put = await this.#blob("PUT", `${path}?comp=block&blockid=${encodeURIComponent(ids[i] ?? "")}`, {}, block);
      if (put?.status !== 201) return put;
    }
    const list = utf8(`<BlockList>${ids.map((one) => `<Latest>${one}</Latest>`).join("")}</BlockList>`);
    return this.#blob("PUT", `${path}?comp=blocklist`, headers, list);
  }

  /** Takes a snapshot of a blob. True if it was acknowledged. */
  async snapshot(name: string): Promise<boolean> {
    return (await this.#blob("PUT", `/${container}/${name}?comp=snapshot`, {}))?.status === 201;
  }

  /** Returns every blob with its snapshots, properties and metadata, as the list tells them. Undefined: the stamp does not say. */
  async list(): Promise<string | undefined> {
    const received = await this.#blob("GET", `/${container}?restype=container&comp=list&include=snapshots,metadata`, {});
    if (received?.status !== 200 || received.short) return undefined;
    return fromUtf8(received.body).replace(/ServiceEndpoint="[^"]*"/, "");
  }

  #blob(method: string, path: string, headers: Readonly<Record<string, string>>, body?: Uint8Array): Promise<Received | undefined> {
    return this.#blobs.request(method, path, { "x-ms-version": "2023-11-03", ...headers }, body);
  }

  /** Returns Last Sync Time, in milliseconds since 1970; undefined: it is not told. */
  async lastSyncMs(): Promise<number | undefined> {
    const received = await this.#tables.request("GET", "/?restype=service&comp=stats", {});
    if (received?.status !== 200 || received.short) return undefined;
    const text = fromUtf8(received.body);
    const [, time = ""] = /<Status>live<\/Status><LastSyncTime>([^<]+)</.exec(text) ?? [];
    return parseRfc1123(time);
  }
}
