/** The operations of a blob store, done with entity group transactions of a table (`partsOf`). */
import { toBase64 } from "@stamp/azure-rest";
import { fromUtf8, utf8 } from "@stamp/base";
import type { Answer, BlobDoor } from "@stamp/histories";
import { answerOfStatus, BrokenPromise, entityCount, keyOf, nameOf, partsOf, wholeOf } from "@stamp/histories";
import type { BlobCondition as Condition } from "@stamp/linearizability";
import type { World } from "@stamp/ports";
import type { Simulation } from "../simulation.ts";
import type { WholeCluster } from "./cluster.ts";
import { HttpClient, type Received } from "./http-client.ts";

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
    const answer = await this.#transaction(
      partsOf(bytes).map((part, i) => {
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
    const entities = page.entities.map((entity) => ({
      etag: entity["odata.etag"],
      bytes: Uint8Array.from(atob(entity.bytes), (character) => character.charCodeAt(0)),
    }));
    const whole = wholeOf(entities, `${container}/${blob}`);
    return whole === undefined ? { kind: "noBlob" } : { kind: "ok", ...whole };
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
  if (answer === undefined) return { kind: "unknown" };
  if (answer.status < 300) return { kind: "ok" };
  return answerOfStatus(answer.status, answer.headers["x-ms-error-code"]);
}
