/** A client of the Queue REST API for workloads: what it was told, or that it does not know. */
import { parseRfc1123 } from "@stamp/azure-rest";
import { fromUtf8, utf8 } from "@stamp/base";
import type { QueueAnswer, QueueDoor, ToldMessage } from "@stamp/histories";
import { BrokenPromise } from "@stamp/histories";
import type { World } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { type HttpAccount, HttpClient, type Received } from "./http-client.ts";

export class QueueClient implements QueueDoor {
  readonly #http: HttpClient;

  constructor(sim: Simulation, world: World, name: string, door: HttpAccount) {
    this.#http = new HttpClient(sim, world, name, door, "queue");
  }

  async create(queue: string): Promise<QueueAnswer<void>> {
    return answerOf(await this.#http.request("PUT", `/${queue}`, {}), () => {});
  }

  async put(queue: string, text: string, hiddenS: number, liveS: number): Promise<QueueAnswer<ToldMessage>> {
    const body = utf8(`<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`);
    const path = `/${queue}/messages?visibilitytimeout=${hiddenS}&messagettl=${liveS}`;
    return answerOf(await this.#http.request("POST", path, { "content-length": String(body.length) }, body), (answer) =>
      one(messagesOf(answer)),
    );
  }

  async take(queue: string, count: number, timeoutS: number): Promise<QueueAnswer<readonly ToldMessage[]>> {
    return answerOf(
      await this.#http.request("GET", `/${queue}/messages?numofmessages=${count}&visibilitytimeout=${timeoutS}`, {}),
      messagesOf,
    );
  }

  async peek(queue: string): Promise<QueueAnswer<readonly ToldMessage[]>> {
    return answerOf(await this.#http.request("GET", `/${queue}/messages?peekonly=true&numofmessages=32`, {}), messagesOf);
  }

  async delete(queue: string, { messageId, popReceipt }: ToldMessage): Promise<QueueAnswer<void>> {
    return answerOf(await this.#http.request("DELETE", `/${queue}/messages/${messageId}?popreceipt=${popReceipt}`, {}), () => {});
  }

  /** Returns the new receipt, and when it is visible. */
  async update(
    queue: string,
    message: ToldMessage,
    text: string,
    hiddenS: number,
  ): Promise<QueueAnswer<{ popReceipt: string; visibleS: number }>> {
    const body = utf8(`<QueueMessage><MessageText>${text}</MessageText></QueueMessage>`);
    const path = `/${queue}/messages/${message.messageId}?popreceipt=${message.popReceipt}&visibilitytimeout=${hiddenS}`;
    return answerOf(await this.#http.request("PUT", path, { "content-length": String(body.length) }, body), ({ headers }) => ({
      popReceipt: headers["x-ms-popreceipt"] ?? "",
      visibleS: secondsOf(headers["x-ms-time-next-visible"]),
    }));
  }

  async count(queue: string): Promise<QueueAnswer<number>> {
    return answerOf(await this.#http.request("GET", `/${queue}?comp=metadata`, {}), ({ headers }) =>
      Number(headers["x-ms-approximate-messages-count"]),
    );
  }
}

/** A 500 and no answer are unknown, everything else that is no success was not done. */
function answerOf<T>(answer: Received | undefined, read: (answer: Received) => T): QueueAnswer<T> {
  if (answer === undefined || answer.status === 500 || answer.short) return { kind: "unknown" };
  if (answer.status >= 200 && answer.status < 300) return { kind: "ok", value: read(answer) };
  return { kind: "refused", code: answer.headers["x-ms-error-code"] ?? `status ${answer.status}` };
}

function messagesOf({ body }: Received): ToldMessage[] {
  return [...fromUtf8(body).matchAll(/<QueueMessage>(.*?)<\/QueueMessage>/gs)].map(([, xml = ""]) => {
    const of = (name: string): string => new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1] ?? "";
    return {
      messageId: of("MessageId"),
      popReceipt: of("PopReceipt"),
      dequeueCount: Number(of("DequeueCount")),
      text: of("MessageText"),
      visibleS: secondsOf(of("TimeNextVisible")),
      insertedS: secondsOf(of("InsertionTime")),
      expiresS: secondsOf(of("ExpirationTime")),
    };
  });
}

function one<T>(list: readonly T[]): T {
  const [first] = list;
  if (first === undefined || list.length !== 1) throw new BrokenPromise(`a put was answered with ${list.length} messages`);
  return first;
}

const secondsOf = (text: string | undefined): number => (parseRfc1123(text ?? "") ?? 0) / 1000;
