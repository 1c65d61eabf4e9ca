/** The operations of a blob store, done with entity group transactions of a table (`partsOf`). */
import { toBase64 } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { Answer, BlobDoor } from "@stamp/histories";
import { answerOfStatus, BrokenPromise, blobOfEntity, entityCount, partitionKeyOf, partsOf, wholeOf } from "@stamp/histories";
import type { BlobCondition as Condition } from "@stamp/linearizability";
import type { World } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import type { WholeCluster } from "../cluster.ts";
import { HttpClient, type Received } from "./http-client.ts";
import { changeRequest, entityPath, lengthOf, queryPage, transaction } from "./table-http.ts";

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
        const entity = { PartitionKey: partitionKeyOf(blob), RowKey: String(i), "bytes@odata.type": "Edm.Binary", bytes: toBase64(part) };
        if (condition.kind === "absent") return changeRequest("POST", container, {}, JSON.stringify(entity));
        const ifMatch: Record<string, string> = condition.kind === "match" ? { "If-Match": condition.etag } : {};
        return changeRequest("PUT", path(container, blob, i), ifMatch, JSON.stringify(entity));
      }),
    );
    return answer.kind === "noBlob" ? { kind: "conditionNotMet" } : answer;
  }

  async get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    const page = await this.#query(container, `PartitionKey eq '${partitionKeyOf(blob)}'`);
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
      Array.from({ length: entityCount }, (_, i) => changeRequest("DELETE", path(container, blob, i), { "If-Match": ifMatch })),
    );
  }

  async list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    const page = await this.#query(container, "RowKey eq '0'");
    if (!("entities" in page)) return page;
    return { kind: "ok", etags: new Map(page.entities.map((entity) => [blobOfEntity(entity.PartitionKey), entity["odata.etag"]])) };
  }

  /** Returns all pages, three entities each when several partitions are asked. */
  async #query(container: string, filter: string): Promise<Answer<never> | { readonly entities: readonly ShownEntity[] }> {
    const entities: ShownEntity[] = [];
    const top = filter.startsWith("PartitionKey") ? entityCount + 1 : 3;
    let next = "";
    do {
      const page = await queryPage<ShownEntity>(this.#http, container, filter, top, next);
      if (!("entities" in page)) return answerOf(page.received) as Answer<never>;
      entities.push(...page.entities);
      next = page.next;
    } while (next !== "");
    return { entities };
  }

  /** With the ETag that all of its entities have then. */
  async #transaction(requests: readonly string[]): Promise<Answer> {
    const answer = await transaction(this.#http, requests);
    if (!("etags" in answer)) return answerOf(answer.received);
    const etags = new Set(answer.etags);
    if (etags.size > 1) throw new BrokenPromise(`a transaction answered ${etags.size} ETags`);
    const [etag] = etags;
    return etag === undefined ? { kind: "ok" } : { kind: "ok", etag };
  }
}

const path = (container: string, blob: string, index: number): string => entityPath(container, partitionKeyOf(blob), String(index));

/** A 500 and no answer are unknown, everything else that is no success was not done. */
function answerOf(answer: Received | undefined): Answer {
  if (answer === undefined) return { kind: "unknown" };
  if (answer.status < 300) return { kind: "ok" };
  return answerOfStatus(answer.status, answer.headers["x-ms-error-code"]);
}
