/**
 * `stamp bench queues`: one queue, filled message by message; at some sizes put, peek, get and delete are measured. What is taken is soon
 * visible again, and what is deleted is about what was put meanwhile, so the size holds.
 */
import type { DrillTarget } from "@stamp/drills";
import { SignedClient } from "../signed-client.ts";
import { contains, expected } from "./answers.ts";
import { type Growing, grow } from "./growth.ts";

const queue = "million";
/** So short that what was taken is soon there again. */
const hiddenS = 1;
const deletedWithinS = 60;

export const queues = (args: string[]): Promise<void> => grow(args, "queues", (target, bytes) => new QueueGrowth(target, bytes));

interface Taken {
  readonly id: string;
  readonly receipt: string;
}

class QueueGrowth implements Growing {
  readonly unit = "messages";
  readonly perFill = 1;
  readonly operations: Growing["operations"];
  readonly #client: SignedClient;
  readonly #body: Buffer;

  constructor(target: DrillTarget, bytes: number) {
    this.#client = new SignedClient(target.connectionString, "queue");
    this.#body = Buffer.from(`<QueueMessage><MessageText>${"x".repeat(bytes)}</MessageText></QueueMessage>`);
    this.operations = [
      ["put", () => this.fill()],
      ["peek", () => this.#peek()],
      ["get", async () => (await this.#take(hiddenS)) !== undefined],
      ["get and delete", () => this.#getAndDelete()],
    ];
  }

  async prepare(): Promise<void> {
    expected(await this.#client.call("PUT", `/${queue}`, {}, Buffer.alloc(0)), 201);
  }

  async fill(): Promise<boolean> {
    return expected(await this.#client.call("POST", `/${queue}/messages`, { "content-type": "application/xml" }, this.#body), 201);
  }

  async #peek(): Promise<boolean> {
    const answer = await this.#client.call("GET", `/${queue}/messages?peekonly=true`, {});
    return expected(answer, 200) && contains(answer, "<MessageText>");
  }

  /** Undefined: busy, or everything is hidden just now. */
  async #take(seconds: number): Promise<Taken | undefined> {
    const answer = await this.#client.call("GET", `/${queue}/messages?visibilitytimeout=${seconds}`, {});
    if (!expected(answer, 200) || !answer.body.includes("<MessageText>")) return undefined;
    const text = answer.body.toString("latin1");
    return { id: between(text, "MessageId"), receipt: between(text, "PopReceipt") };
  }

  async #getAndDelete(): Promise<boolean> {
    const taken = await this.#take(deletedWithinS);
    if (taken === undefined) return false;
    const { id, receipt } = taken;
    for (;;) {
      const answer = await this.#client.call("DELETE", `/${queue}/messages/${id}?popreceipt=${encodeURIComponent(receipt)}`, {});
      if (expected(answer, 204)) return true;
    }
  }

  close(): void {
    this.#client.close();
  }
}

const between = (text: string, name: string): string => text.slice(text.indexOf(`<${name}>`) + name.length + 2, text.indexOf(`</${name}>`));
