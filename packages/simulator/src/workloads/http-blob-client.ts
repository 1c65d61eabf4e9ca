/**
 * A client of the Blob REST API: signed requests to the front-end's own HTTP handler, over a network that delays and cuts. Each request
 * is a connection of its own; one that is not answered in time is unknown.
 */
import { signRequest } from "@stamp/azure-rest";
import { concatBytes, fromUtf8 } from "@stamp/base";
import type { FrontEndRole } from "@stamp/front-end";
import type { BlobCondition as Condition } from "@stamp/linearizability";
import type { HttpResponse, World } from "@stamp/ports";
import { within } from "@stamp/ports";
import type { Simulation } from "../simulation.ts";
import { BrokenPromise } from "../simulation.ts";
import type { Answer, BlobDoor } from "./blob-client.ts";
import { answerOfCode } from "./blob-client.ts";
import type { WholeCluster } from "./cluster.ts";

interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** The body broke off. */
  readonly short: boolean;
}

const timeoutMs = 5_000;
const chunkBytes = 64 * 1024;

export class HttpBlobClient implements BlobDoor {
  readonly #sim: Simulation;
  readonly #world: World;
  readonly #name: string;
  readonly #cluster: WholeCluster;

  constructor(sim: Simulation, world: World, name: string, cluster: WholeCluster) {
    this.#sim = sim;
    this.#world = world;
    this.#name = name;
    this.#cluster = cluster;
  }

  async createContainer(container: string): Promise<Answer> {
    return answerOf(await this.#request("PUT", `/${container}?restype=container`, {}), 201);
  }

  async deleteContainer(container: string): Promise<Answer> {
    return answerOf(await this.#request("DELETE", `/${container}?restype=container`, {}), 202);
  }

  async put(container: string, blob: string, bytes: Uint8Array, condition: Condition): Promise<Answer> {
    const headers = { "x-ms-blob-type": "BlockBlob", "content-length": String(bytes.length), ...headersOf(condition) };
    const answer = await this.#request("PUT", `/${container}/${blob}`, headers, bytes);
    return answer?.status === 201 ? { kind: "ok", etag: answer.headers.etag as string } : answerOf(answer, 201);
  }

  async get(container: string, blob: string): Promise<Answer<{ readonly etag: string; readonly bytes: Uint8Array }>> {
    const answer = await this.#request("GET", `/${container}/${blob}`, {});
    if (answer?.status !== 200) return answerOf(answer, 200) as Answer<never>;
    if (answer.short) return { kind: "unknown" };
    const length = Number(answer.headers["content-length"]);
    if (answer.body.length !== length)
      throw new BrokenPromise(`blob ${container}/${blob} said ${length} bytes and gave ${answer.body.length}`);
    return { kind: "ok", etag: answer.headers.etag as string, bytes: answer.body };
  }

  async delete(container: string, blob: string, condition: Condition): Promise<Answer> {
    return answerOf(await this.#request("DELETE", `/${container}/${blob}`, headersOf(condition)), 202);
  }

  async list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    const etags = new Map<string, string>();
    let marker = "";
    do {
      const page = `/${container}?restype=container&comp=list&maxresults=3${marker === "" ? "" : `&marker=${encodeURIComponent(marker)}`}`;
      const answer = await this.#request("GET", page, {});
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

  async #request(method: string, path: string, given: Readonly<Record<string, string>>, body?: Uint8Array): Promise<Received | undefined> {
    const { account, accountKey, frontEnd } = this.#cluster;
    const { clock, digest } = this.#world;
    const target = `/${account}${path}`;
    const unsigned = { host: "127.0.0.1:10000", "content-length": String(body?.length ?? 0), ...given };
    const headers = signRequest({ method, target, headers: unsigned }, account, accountKey, clock.wallMs(), (key, message) =>
      digest.hmacSha256(key, message),
    );
    const stop = new AbortController();
    const received = await within(
      clock,
      timeoutMs,
      this.#sim.ask(this.#name, frontEnd, async () => {
        const role = this.#sim.role(frontEnd) as FrontEndRole;
        return collected(
          await role.blob({ method, target, headers, body: chunks(body), remoteAddress: this.#name, secure: false, signal: stop.signal }),
        );
      }),
    );
    if (received === undefined) stop.abort();
    return received;
  }
}

async function* chunks(body: Uint8Array | undefined): AsyncGenerator<Uint8Array> {
  for (let at = 0; body && at < body.length; at += chunkBytes) yield body.subarray(at, at + chunkBytes);
}

async function collected(response: HttpResponse): Promise<Received> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers))
    headers[name.toLowerCase()] = typeof value === "string" ? value : value.join(", ");
  const { body, status } = response;
  if (body === undefined || body instanceof Uint8Array) return { status, headers, body: body ?? new Uint8Array(0), short: false };
  const parts: Uint8Array[] = [];
  try {
    for await (const part of body) parts.push(part);
    return { status, headers, body: concatBytes(parts), short: false };
  } catch {
    return { status, headers, body: concatBytes(parts), short: true };
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
