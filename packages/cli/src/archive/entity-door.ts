/**
 * Entities as the REST API has them, without the SDK: it would take a Double without a fraction for an Int32, and its own fields for properties of
 * the same names.
 *
 * Invariant: an entity that is read and written has every property with its type and its value.
 */
import { createHmac, randomUUID } from "node:crypto";
import type { EntityJson } from "./items.ts";
import type { AccountPlace } from "./place.ts";

const version = "2019-02-02";
const tries = 8;
const firstDelayMs = 250;
const longestDelayMs = 15_000;
const timeoutMs = 120_000;
const pageSize = 1_000;
/** Bounds of the service for one transaction. Bytes are those of the entities; each has about 400 bytes around it. */
export const transactionMax = { entities: 100, bytes: 3 * 1024 * 1024 } as const;

export interface EntityPage {
  readonly entities: readonly EntityJson[];
  /** Where the next page begins; undefined: this is the last one. */
  readonly next: { readonly partitionKey: string; readonly rowKey: string } | undefined;
}

interface Asked {
  readonly method: "GET" | "POST";
  /** Path and query behind the URL of the service. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export class EntityRefused extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export class EntityDoor {
  readonly #place: AccountPlace;
  readonly #key: Buffer;

  constructor(place: AccountPlace) {
    this.#place = place;
    this.#key = Buffer.from(place.key, "base64");
  }

  async page(table: string, from: EntityPage["next"]): Promise<EntityPage> {
    const query = new URLSearchParams({ $top: String(pageSize) });
    if (from !== undefined) {
      query.set("NextPartitionKey", from.partitionKey);
      if (from.rowKey !== "") query.set("NextRowKey", from.rowKey);
    }
    const answer = await this.#sent({
      method: "GET",
      path: `/${table}()?${query}`,
      headers: { accept: "application/json;odata=minimalmetadata" },
    });
    const partitionKey = answer.headers.get("x-ms-continuation-NextPartitionKey");
    const { value } = JSON.parse(answer.text, exact) as { readonly value: readonly EntityJson[] };
    const next = partitionKey === null ? undefined : { partitionKey, rowKey: answer.headers.get("x-ms-continuation-NextRowKey") ?? "" };
    return { entities: value.map(withoutMarks), next };
  }

  /** Writes entities of one partition, each in the place of one with its keys. */
  async put(table: string, entities: readonly EntityJson[]): Promise<void> {
    if (entities.some(({ PartitionKey, RowKey }) => !`${PartitionKey}\0${RowKey}`.isWellFormed()))
      throw new EntityRefused(400, "a key has half of a character, which no URL can carry");
    const [batch, changes] = [`batch_${randomUUID()}`, `changeset_${randomUUID()}`];
    const parts = entities.map((entity) => {
      const [partitionKey, rowKey] = [entity.PartitionKey, entity.RowKey].map((key) =>
        encodeURIComponent(String(key).replaceAll("'", "''")),
      );
      const url = `${this.#place.urls.table}/${table}(PartitionKey='${partitionKey}',RowKey='${rowKey}')`;
      return `--${changes}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\nPUT ${url} HTTP/1.1\r\nContent-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\nDataServiceVersion: 3.0;\r\n\r\n${exactText(entity)}\r\n`;
    });
    const body = `--${batch}\r\nContent-Type: multipart/mixed; boundary=${changes}\r\n\r\n${parts.join("")}--${changes}--\r\n--${batch}--\r\n`;
    const headers = { "content-type": `multipart/mixed; boundary=${batch}`, accept: "application/json" };
    const { text } = await this.#sent({ method: "POST", path: "/$batch", headers, body });
    const statuses = [...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status));
    const refused = statuses.find((status) => status >= 400);
    if (refused !== undefined) throw new EntityRefused(refused, `table ${table} refuses entities: ${refused} ${reasonIn(text)}`);
  }

  /** Repeats what is safe to repeat: reads, and writes that replace. */
  async #sent(asked: Asked): Promise<{ readonly headers: Headers; readonly text: string }> {
    for (let tried = 1; ; tried++) {
      try {
        const answer = await fetch(`${this.#place.urls.table}${asked.path}`, {
          method: asked.method,
          headers: { ...asked.headers, ...this.#signed(asked.path) },
          signal: AbortSignal.timeout(timeoutMs),
          ...(asked.body === undefined ? {} : { body: asked.body }),
        });
        const text = await answer.text();
        if (answer.status < 400) return { headers: answer.headers, text };
        throw new EntityRefused(answer.status, `${asked.method} ${asked.path.split("?")[0]}: ${answer.status} ${reasonIn(text)}`);
      } catch (error) {
        const again = !(error instanceof EntityRefused) || error.status >= 500 || error.status === 408 || error.status === 429;
        if (!again || tried >= tries) throw Object.assign(error as Error, { request: { url: this.#place.urls.table } });
        await new Promise((resolve) => setTimeout(resolve, Math.min(longestDelayMs, firstDelayMs * 2 ** tried)));
      }
    }
  }

  /** Returns the headers of a SharedKeyLite signature of the Table service, over date and path. */
  #signed(path: string): Record<string, string> {
    const date = new Date().toUTCString();
    const { pathname } = new URL(`${this.#place.urls.table}${path}`);
    const signature = createHmac("sha256", this.#key).update(`${date}\n/${this.#place.account}${pathname}`).digest("base64");
    return {
      "x-ms-date": date,
      "x-ms-version": version,
      authorization: `SharedKeyLite ${this.#place.account}:${signature}`,
      dataserviceversion: "3.0",
    };
  }
}

/** Adds the type to each number that has a point or an exponent: as a number of JavaScript it may have none. */
function exact(this: Record<string, unknown>, key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const type = `${key}@odata.type`;
  if (typeof value === "number" && /[.eE]/.test(context?.source ?? "") && this[type] === undefined) this[type] = "Edm.Double";
  return value;
}

/** The types of the language do not have it yet. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

/** Writes JSON as JSON.stringify does, which makes 0 of -0. */
export const exactText = (value: unknown): string =>
  JSON.stringify(value, (_name, each: unknown) => (Object.is(each, -0) ? rawJSON("-0.0") : each));

/** Without what the service makes itself: the time, the ETag and the URL. */
function withoutMarks(entity: EntityJson): EntityJson {
  const kept = Object.entries(entity).filter(
    ([name]) => !name.startsWith("odata.") && name !== "Timestamp" && name !== "Timestamp@odata.type",
  );
  return Object.fromEntries(kept);
}

const reasonIn = (text: string): string => {
  const code = /"code"\s*:\s*"([^"]{1,200})"/.exec(text)?.[1] ?? /<Code>([^<]{1,200})/.exec(text)?.[1];
  return code ?? text.slice(0, 200);
};
