/**
 * The operations of a blob store, done with entity group transactions: a container is a table, a blob a PartitionKey whose few entities
 * hold its bytes in parts and are only ever written together. So what judges blobs judges transactions: a transaction that was applied in
 * part, or a page that shows two of them mixed, is bytes that nobody wrote.
 */
import { toBase64 } from "@stamp/azure-rest";
import { concatBytes, fromUtf8, utf8 } from "@stamp/base";
import type { BlobCondition as Condition } from "@stamp/linearizability";
import type { World } from "@stamp/ports";
import type { Simulation } from "../simulation.ts";
import { BrokenPromise } from "../simulation.ts";
import type { Answer, BlobDoor } from "./blob-client.ts";
import type { WholeCluster } from "./cluster.ts";
import { HttpClient, type Received } from "./http-client.ts";

/** Of one partition; a binary property holds 64 KiB. */
const entityCount = 8;

interface ShownEntity {
  readonly PartitionKey: string;
  readonly RowKey: string;
  readonly bytes: string;
  readonly "odata.etag": string;
}

export class TransactionClient implements BlobDoor {
  readonly #http: HttpClient;

  constructor(sim: Simulation, world: World, name: string, cluster: WholeCluster) {
    this.#http = new HttpClient(sim, world, name, cluster, "table");
  }

  async createContainer(container: string): Promise<Answer> {
    const body = utf8(JSON.stringify({ TableName: container }));
    return answerOf(await this.#http.request("POST", "/Tables", lengthOf(body, "application/json"), body));
  }

  async deleteContainer(container: string): Promise<Answer> {
    const answer = answerOf(await this.#http.request("DELETE", `/Tables('${container}')`, {}));
    return answer.kind === "noBlob" ? { kind: "noContainer" } : answer;
  }

  async put(container: string, blob: string, bytes: Uint8Array, condition: Condition): Promise<Answer> {
    const partBytes = Math.ceil(bytes.length / entityCount);
    const parts = Array.from({ length: entityCount }, (_, i) => bytes.subarray(i * partBytes, (i + 1) * partBytes));
    const answer = await this.#transaction(
      parts.map((part, i) => {
        const entity = { PartitionKey: keyOf(blob), RowKey: String(i), "bytes@odata.type": "Edm.Binary", bytes: toBase64(part) };
        if (condition.kind === "absent") return request("POST", container, {}, JSON.stringify(entity));
        const ifMatch: Record<string, string> = condition.kind === "match" ? { "If-Match": condition.etag } : {};
        return request("PUT", path(container, blob, i), ifMatch, JSON.stringify(entity));
      }),
    );
    return answer.kind === "noBlob" ? { kind: "conditionNotMet" } : answer;
  }

  async get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    const page = await this.#query(container, `PartitionKey eq '${keyOf(blob)}'`);
    if (!("entities" in page)) return page;
    const { entities } = page;
    if (entities.length === 0) return { kind: "noBlob" };
    const what = `${container}/${blob}`;
    if (entities.length !== entityCount) throw new BrokenPromise(`${what}: ${entities.length} entities of a transaction of ${entityCount}`);
    const etags = new Set(entities.map((entity) => entity["odata.etag"]));
    if (etags.size !== 1) throw new BrokenPromise(`${what}: entities of ${etags.size} transactions in one page`);
    const bytes = concatBytes(entities.map((entity) => Uint8Array.from(atob(entity.bytes), (character) => character.charCodeAt(0))));
    return { kind: "ok", etag: entities[0]?.["odata.etag"] as string, bytes };
  }

  delete(container: string, blob: string, condition: Condition): Promise<Answer> {
    const ifMatch = condition.kind === "match" ? condition.etag : "*";
    return this.#transaction(
      Array.from({ length: entityCount }, (_, i) => request("DELETE", path(container, blob, i), { "If-Match": ifMatch })),
    );
  }

  async list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    const page = await this.#query(container, "RowKey eq '0'");
    if (!("entities" in page)) return page;
    return { kind: "ok", etags: new Map(page.entities.map((entity) => [nameOf(entity.PartitionKey), entity["odata.etag"]])) };
  }

  /** All pages, three entities each when several partitions are asked. */
  async #query(container: string, filter: string): Promise<Answer<never> | { readonly entities: readonly ShownEntity[] }> {
    const entities: ShownEntity[] = [];
    const top = filter.startsWith("PartitionKey") ? entityCount + 1 : 3;
    let next = "";
    do {
      const answer = await this.#http.request("GET", `/${container}()?$filter=${encodeURIComponent(filter)}&$top=${top}${next}`, {
        accept: "application/json;odata=minimalmetadata",
      });
      if (answer?.status !== 200) return answerOf(answer) as Answer<never>;
      if (answer.short) return { kind: "unknown" };
      entities.push(...(JSON.parse(fromUtf8(answer.body)) as { value: ShownEntity[] }).value);
      const partition = answer.headers["x-ms-continuation-nextpartitionkey"];
      const row = answer.headers["x-ms-continuation-nextrowkey"];
      next =
        partition === undefined ? "" : `&NextPartitionKey=${encodeURIComponent(partition)}&NextRowKey=${encodeURIComponent(row ?? "")}`;
    } while (next !== "");
    return { entities };
  }

  /** With the ETag that all of its entities have then. */
  async #transaction(requests: readonly string[]): Promise<Answer> {
    const parts = requests.map((one) => `--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n${one}\r\n`);
    const body = utf8(`--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n${parts.join("")}--c--\r\n--b--\r\n`);
    const answer = await this.#http.request("POST", "/$batch", lengthOf(body, "multipart/mixed; boundary=b"), body);
    if (answer?.status !== 202) return answerOf(answer);
    if (answer.short) return { kind: "unknown" };
    const text = fromUtf8(answer.body);
    const status = Number(/HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);
    if (status >= 300)
      return answerOf({ ...answer, status, headers: { "x-ms-error-code": /x-ms-error-code: (\w+)/.exec(text)?.[1] ?? "" } });
    const etags = new Set([...text.matchAll(/ETag: (W\/"[^"]*")/g)].map(([, etag]) => etag as string));
    if (etags.size > 1) throw new BrokenPromise(`a transaction answered ${etags.size} ETags`);
    const [etag] = etags;
    return etag === undefined ? { kind: "ok" } : { kind: "ok", etag };
  }
}

const keyOf = (blob: string): string => blob.replaceAll("/", "|");
const nameOf = (partitionKey: string): string => partitionKey.replaceAll("|", "/");

const path = (container: string, blob: string, index: number): string =>
  `${container}(PartitionKey='${encodeURIComponent(keyOf(blob))}',RowKey='${index}')`;

const lengthOf = (body: Uint8Array, type: string): Record<string, string> => ({
  "content-length": String(body.length),
  "content-type": type,
});

function request(method: string, url: string, headers: Readonly<Record<string, string>>, body = ""): string {
  const lines = Object.entries({ "Content-Type": "application/json", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${url} HTTP/1.1\r\n${lines.join("")}\r\n${body}`;
}

/** A 500 and no answer are unknown, everything else that is no success was not done. */
function answerOf(answer: Received | undefined): Answer {
  if (answer === undefined || answer.status === 500) return { kind: "unknown" };
  if (answer.status < 300) return { kind: "ok" };
  const code = answer.headers["x-ms-error-code"];
  switch (code) {
    case "ResourceNotFound":
      return { kind: "noBlob" };
    case "TableNotFound":
      return { kind: "noContainer" };
    case "UpdateConditionNotSatisfied":
      return { kind: "conditionNotMet" };
    case "EntityAlreadyExists":
    case "TableAlreadyExists":
      return { kind: "exists" };
    default:
      return { kind: "notDone", why: `${answer.status} ${code}` };
  }
}
