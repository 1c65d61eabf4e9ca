/**
 * A client of the cluster's objects over `stamp.v1.FrontEnd`. What the service says is told apart three ways: an answer of the service
 * (also that it can't be done), certainly not done, and unknown.
 */
import type { Failure } from "@stamp/base";
import { concatBytes, FailureError } from "@stamp/base";
import type { Answer, BlobDoor } from "@stamp/histories";
import { answerOfCode, BrokenPromise } from "@stamp/histories";
import type { BlobCondition as Condition } from "@stamp/linearizability";
import type { Address, CallOptions, Client, World } from "@stamp/ports";
import type { Conditions } from "@stamp/wire";
import { FrontEnd } from "@stamp/wire";

const timeoutMs = 5_000;
const chunkBytes = 64 * 1024;

export class BlobClient implements BlobDoor {
  readonly #client: Client<typeof FrontEnd>;
  readonly #account: string;
  readonly #options: CallOptions;

  constructor(world: World, frontEnd: Address, account: string, token: string) {
    this.#client = world.transport.client(frontEnd, FrontEnd);
    this.#account = account;
    this.#options = { timeoutMs, metadata: { authorization: `Bearer ${token}` } };
  }

  async createContainer(container: string): Promise<Answer> {
    const outcome = await this.#client.createContainer({ account: this.#account, container }, this.#options);
    return outcome.ok ? { kind: "ok" } : answerOf(outcome.failure);
  }

  async deleteContainer(container: string): Promise<Answer> {
    const outcome = await this.#client.deleteContainer({ account: this.#account, container }, this.#options);
    return outcome.ok ? { kind: "ok" } : answerOf(outcome.failure);
  }

  async put(container: string, blob: string, bytes: Uint8Array, condition: Condition): Promise<Answer> {
    const name = { account: this.#account, container, blob };
    const conditions = conditionsOf(condition);
    const messages = async function* () {
      yield { ...name, conditions, payload: bytes.subarray(0, chunkBytes) };
      for (let at = chunkBytes; at < bytes.length; at += chunkBytes) yield { payload: bytes.subarray(at, at + chunkBytes) };
    };
    const outcome = await this.#client.putBlob(messages(), this.#options);
    return outcome.ok ? { kind: "ok", etag: outcome.value.etag } : answerOf(outcome.failure);
  }

  async get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    const parts: Uint8Array[] = [];
    let etag = "";
    let length = 0;
    try {
      for await (const message of this.#client.getBlob({ account: this.#account, container, blob }, this.#options)) {
        if (message.blob) {
          etag = message.blob.etag;
          length = Number(message.blob.contentLengthBytes);
        }
        parts.push(message.payload);
      }
    } catch (error) {
      if (error instanceof FailureError) return answerOf(error.failure);
      throw error;
    }
    const bytes = concatBytes(parts);
    if (bytes.length !== length) throw new BrokenPromise(`blob ${container}/${blob} said ${length} bytes and gave ${bytes.length}`);
    return { kind: "ok", etag, bytes };
  }

  async delete(container: string, blob: string, condition: Condition): Promise<Answer> {
    const request = { account: this.#account, container, blob, conditions: conditionsOf(condition) };
    const outcome = await this.#client.deleteBlob(request, this.#options);
    return outcome.ok ? { kind: "ok" } : answerOf(outcome.failure);
  }

  /** Returns all pages: names and their ETags. */
  async list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    const etags = new Map<string, string>();
    let marker = "";
    do {
      const outcome = await this.#client.listBlobs({ account: this.#account, container, marker, maxResults: 3 }, this.#options);
      if (!outcome.ok) return answerOf(outcome.failure);
      for (const { kind } of outcome.value.entries) if (kind.case === "blob") etags.set(kind.value.name, kind.value.etag);
      marker = outcome.value.nextMarker;
    } while (marker !== "");
    return { kind: "ok", etags };
  }
}

function conditionsOf(condition: Condition): Partial<Pick<Conditions, "ifMatch" | "ifNoneMatch">> & { $typeName?: never } {
  if (condition.kind === "match") return { ifMatch: condition.etag };
  return condition.kind === "absent" ? { ifNoneMatch: "*" } : {};
}

function answerOf(failure: Failure): Answer<never> {
  const answer = answerOfCode(failure.details?.["x-ms-error-code"]);
  return (answer ?? (failure.applied === "no" ? { kind: "notDone", why: failure.reason } : { kind: "unknown" })) as Answer<never>;
}
