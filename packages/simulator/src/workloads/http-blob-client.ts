/** A client of the Blob REST API. */
import { fromUtf8 } from "@stamp/base";
import type { BlobCondition as Condition } from "@stamp/linearizability";
import type { World } from "@stamp/ports";
import type { Simulation } from "../simulation.ts";
import { BrokenPromise } from "../simulation.ts";
import type { Answer, BlobDoor } from "./blob-client.ts";
import { answerOfCode } from "./blob-client.ts";
import type { WholeCluster } from "./cluster.ts";
import { HttpClient, type Received } from "./http-client.ts";

export class HttpBlobClient implements BlobDoor {
  readonly #http: HttpClient;

  constructor(sim: Simulation, world: World, name: string, cluster: WholeCluster) {
    this.#http = new HttpClient(sim, world, name, cluster, "blob");
  }

  async createContainer(container: string): Promise<Answer> {
    return answerOf(await this.#http.request("PUT", `/${container}?restype=container`, {}), 201);
  }

  async deleteContainer(container: string): Promise<Answer> {
    return answerOf(await this.#http.request("DELETE", `/${container}?restype=container`, {}), 202);
  }

  async put(container: string, blob: string, bytes: Uint8Array, condition: Condition): Promise<Answer> {
    const headers = { "x-ms-blob-type": "BlockBlob", "content-length": String(bytes.length), ...headersOf(condition) };
    const answer = await this.#http.request("PUT", `/${container}/${blob}`, headers, bytes);
    return answer?.status === 201 ? { kind: "ok", etag: answer.headers.etag as string } : answerOf(answer, 201);
  }

  async get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    const answer = await this.#http.request("GET", `/${container}/${blob}`, {});
    if (answer?.status !== 200) return answerOf(answer, 200) as Answer<never>;
    if (answer.short) return { kind: "unknown" };
    const length = Number(answer.headers["content-length"]);
    if (answer.body.length !== length)
      throw new BrokenPromise(`blob ${container}/${blob} said ${length} bytes and gave ${answer.body.length}`);
    return { kind: "ok", etag: answer.headers.etag as string, bytes: answer.body };
  }

  async delete(container: string, blob: string, condition: Condition): Promise<Answer> {
    return answerOf(await this.#http.request("DELETE", `/${container}/${blob}`, headersOf(condition)), 202);
  }

  async list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    const etags = new Map<string, string>();
    let marker = "";
    do {
      const page = `/${container}?restype=container&comp=list&maxresults=3${marker === "" ? "" : `&marker=${encodeURIComponent(marker)}`}`;
      const answer = await this.#http.request("GET", page, {});
      if (answer?.status !== 200 || answer.short) return answerOf(answer, 200) as Answer<never>;
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

function headersOf(condition: Condition): Record<string, string> {
  if (condition.kind === "match") return { "if-match": condition.etag };
  return condition.kind === "absent" ? { "if-none-match": "*" } : {};
}

/** A 500 and no answer are unknown, everything else that is no success was not done. */
function answerOf(answer: Received | undefined, success: number): Answer {
  if (answer === undefined || answer.status === 500) return { kind: "unknown" };
  if (answer.status === success) return { kind: "ok" };
  return (
    answerOfCode(answer.headers["x-ms-error-code"]) ?? { kind: "notDone", why: `${answer.status} ${answer.headers["x-ms-error-code"]}` }
  );
}
