/** Blobs over plain HTTP, by whatever sends and signs a request. */
import { fromUtf8 } from "@stamp/base";
import type { BlobCondition } from "@stamp/linearizability";
import type { Answer, BlobDoor } from "./object-door.ts";
import { answerOfStatus } from "./object-door.ts";
import { BrokenPromise } from "./stage.ts";

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Uint8Array;
  /** True if the connection broke before the body's end. */
  readonly short?: boolean | undefined;
}

/** Nobody listened, so nothing was done. */
export interface NotSent {
  readonly kind: "notSent";
}

/** Sends a request to `target` below the account, with its query. Undefined: there was no answer. */
export type SendHttp = (
  method: string,
  target: string,
  headers: Readonly<Record<string, string>>,
  body?: Uint8Array,
) => Promise<HttpAnswer | NotSent | undefined>;

export class HttpBlobDoor implements BlobDoor {
  readonly #send: SendHttp;

  constructor(send: SendHttp) {
    this.#send = send;
  }

  async createContainer(container: string): Promise<Answer> {
    return answerOf(await this.#send("PUT", `/${container}?restype=container`, {}), 201);
  }

  async deleteContainer(container: string): Promise<Answer> {
    return answerOf(await this.#send("DELETE", `/${container}?restype=container`, {}), 202);
  }

  async put(container: string, blob: string, bytes: Uint8Array, condition: BlobCondition): Promise<Answer> {
    const headers = { "x-ms-blob-type": "BlockBlob", "content-length": String(bytes.length), ...headersOf(condition) };
    const answer = await this.#send("PUT", `/${container}/${blob}`, headers, bytes);
    return gave(answer, 201) ? { kind: "ok", etag: answer.headers.etag as string } : answerOf(answer, 201);
  }

  async get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    const answer = await this.#send("GET", `/${container}/${blob}`, {});
    if (!gave(answer, 200)) return answerOf(answer, 200) as Answer<never>;
    if (answer.short) return { kind: "unknown" };
    const length = Number(answer.headers["content-length"]);
    if (answer.body.length !== length)
      throw new BrokenPromise(`blob ${container}/${blob} said ${length} bytes and gave ${answer.body.length}`);
    return { kind: "ok", etag: answer.headers.etag as string, bytes: answer.body };
  }

  async delete(container: string, blob: string, condition: BlobCondition): Promise<Answer> {
    return answerOf(await this.#send("DELETE", `/${container}/${blob}`, headersOf(condition)), 202);
  }

  async list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    const etags = new Map<string, string>();
    let marker = "";
    do {
      const page = `/${container}?restype=container&comp=list&maxresults=3${marker === "" ? "" : `&marker=${encodeURIComponent(marker)}`}`;
      const answer = await this.#send("GET", page, {});
      if (!gave(answer, 200) || answer.short) return answerOf(answer, 200) as Answer<never>;
      const xml = fromUtf8(answer.body);
      for (const [, name = "", etag = ""] of xml.matchAll(/<Blob><Name>([^<]*)<\/Name>.*?<Etag>([^<]*)<\/Etag>/gs)) {
        // Without its quotes, as the service lists it.
        etags.set(name, `"${etag}"`);
      }
      marker = /<NextMarker>([^<]+)<\/NextMarker>/.exec(xml)?.[1] ?? "";
    } while (marker !== "");
    return { kind: "ok", etags };
  }
}

function headersOf(condition: BlobCondition): Record<string, string> {
  if (condition.kind === "match") return { "if-match": condition.etag };
  return condition.kind === "absent" ? { "if-none-match": "*" } : {};
}

const gave = (answer: HttpAnswer | NotSent | undefined, status: number): answer is HttpAnswer =>
  answer !== undefined && "status" in answer && answer.status === status;

function answerOf(answer: HttpAnswer | NotSent | undefined, success: number): Answer {
  if (answer === undefined) return { kind: "unknown" };
  if (!("status" in answer)) return { kind: "notDone", why: "not sent" };
  return answer.status === success ? { kind: "ok" } : answerOfStatus(answer.status, answer.headers["x-ms-error-code"]);
}
