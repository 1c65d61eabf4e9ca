/**
 * Several clients put, take, update and delete the messages of a few queues, some slowly, so that others take the same messages after
 * them. What each saw is judged as it comes (queue-judge.ts); in the end `empty` says what is missing.
 */
import type { Prng } from "@stamp/base";
import type { QueueAnswer, QueueDoor, ToldMessage } from "./queue-door.ts";
import { QueueJudge } from "./queue-judge.ts";
import type { HistoryStage } from "./stage.ts";
import { BrokenPromise, until } from "./stage.ts";

/** Bound of the messages that a client keeps for a while after taking them. */
const heldMax = 12;
/** Visibility time of messages that are taken when the queues are emptied, in seconds: a lost answer must not hide one for longer. */
const emptyingS = 10;

interface Held extends ToldMessage {
  /** Number of the hand-out that the receipt is of; an update gives another receipt of the same hand-out. */
  readonly count: number;
}

/** Several clients of the same few queues, with the judges of all of them. */
export class QueueClients {
  readonly #stage: HistoryStage;
  readonly #queues: readonly string[];
  readonly #pauseMaxMs: number;
  readonly #judges: ReadonlyMap<string, QueueJudge>;
  #textNext = 1;

  /** `pauseMaxMs`: longest pause between two operations of a client. */
  constructor(stage: HistoryStage, queues: readonly string[], pauseMaxMs: number) {
    this.#stage = stage;
    this.#queues = queues;
    this.#pauseMaxMs = pauseMaxMs;
    this.#judges = new Map(queues.map((queue) => [queue, new QueueJudge(queue)]));
  }

  /** Runs one client while `goesOn(operations so far)` is true. */
  async work(client: QueueDoor, prng: Prng, goesOn: (operations: number) => boolean): Promise<void> {
    const held: { readonly queue: string; readonly message: Held }[] = [];
    for (let i = 0; goesOn(i); i++) {
      await this.#stage.sleep(prng.float() * this.#pauseMaxMs);
      const queue = prng.pick(this.#queues);
      const dice = prng.below(100);
      if (dice < 35) await this.#put(client, queue, prng, held);
      else if (dice < 62) await this.#take(client, queue, 1 + prng.below(4), 1 + prng.below(8), held);
      else if (dice < 68) await this.#peek(client, queue);
      else if (dice < 70) this.#count("count", await client.count(queue));
      else if (held.length > 0) {
        const [mine] = held.splice(prng.below(held.length), 1);
        if (mine === undefined) continue;
        if (dice < 90) await this.#delete(client, mine.queue, mine.message);
        else await this.#update(client, mine.queue, mine.message, prng, held);
      }
      while (held.length > heldMax) held.shift();
    }
  }

  /** Takes and deletes messages after the last fault until nothing is missing; then the count has to be 0. */
  async empty(client: QueueDoor, queue: string, withinMs: number): Promise<void> {
    const judge = this.#judge(queue);
    let lost: string[] = [];
    await this.#until(`${queue} gives every message`, withinMs, async () => {
      const found: { queue: string; message: Held }[] = [];
      if ((await this.#take(client, queue, 32, emptyingS, found)) !== "ok") return false;
      for (const { message } of found) while ((await this.#delete(client, queue, message)) === "unknown") await this.#stage.sleep(200);
      lost = judge.missing();
      return found.length === 0 && lost.length === 0;
    }).catch((error: unknown) => {
      throw lost.length > 0 ? new BrokenPromise(`${queue}: lost ${lost.join(", ")}`) : error;
    });
    // Puts whose answer was lost may still be hidden: they are taken as they come.
    await this.#until(`${queue} counts nothing`, withinMs, async () => {
      const found: { queue: string; message: Held }[] = [];
      await this.#take(client, queue, 32, emptyingS, found);
      for (const { message } of found) await this.#delete(client, queue, message);
      const count = await client.count(queue);
      return count.kind === "ok" && count.value === 0;
    });
  }

  #until(what: string, withinMs: number, attempt: () => Promise<boolean>): Promise<void> {
    return until(this.#stage, what, { withinMs, pauseMs: 500 }, attempt);
  }

  async #put(client: QueueDoor, queue: string, prng: Prng, held: { queue: string; message: Held }[]): Promise<void> {
    const text = `text-${this.#textNext++}`;
    const hiddenS = prng.pick([0, 0, 0, 1, 4]);
    const liveS = prng.pick([-1, -1, 604_800, 5]);
    const judge = this.#judge(queue);
    judge.putUnanswered(text);
    const answer = await client.put(queue, text, hiddenS, liveS);
    this.#count("put", answer);
    if (answer.kind !== "ok") return;
    judge.put({ ...answer.value, text });
    if (prng.below(4) === 0) held.push({ queue, message: { ...answer.value, text, dequeueCount: 0, count: 0 } });
  }

  async #take(
    client: QueueDoor,
    queue: string,
    count: number,
    timeoutS: number,
    held: { queue: string; message: Held }[],
  ): Promise<string> {
    const calledAt = this.#stage.nowMs();
    const answer = await client.take(queue, count, timeoutS);
    this.#count("take", answer);
    if (answer.kind !== "ok") return answer.kind;
    if (answer.value.length > count) throw new BrokenPromise(`${queue}: ${answer.value.length} messages where ${count} were asked for`);
    for (const message of answer.value) {
      this.#judge(queue).taken(message, timeoutS, calledAt, this.#stage.nowMs());
      held.push({ queue, message: { ...message, count: message.dequeueCount } });
    }
    this.#stage.count("messages taken", answer.value.length);
    return "ok";
  }

  async #peek(client: QueueDoor, queue: string): Promise<void> {
    const calledAt = this.#stage.nowMs();
    const answer = await client.peek(queue);
    this.#count("peek", answer);
    if (answer.kind === "ok") for (const message of answer.value) this.#judge(queue).peeked(message, calledAt);
  }

  async #delete(client: QueueDoor, queue: string, message: Held): Promise<string> {
    const judge = this.#judge(queue);
    const calledAt = this.#stage.nowMs();
    judge.deleteCalled(message.messageId);
    const answer = await client.delete(queue, message);
    this.#count("delete", answer);
    if (answer.kind === "ok") judge.deleted(message.messageId, message.count, calledAt, this.#stage.nowMs());
    if (answer.kind === "refused") judge.deleteRefused(message.messageId, message.count, answer.code, this.#stage.nowMs());
    return answer.kind;
  }

  async #update(client: QueueDoor, queue: string, message: Held, prng: Prng, held: { queue: string; message: Held }[]): Promise<void> {
    const judge = this.#judge(queue);
    const text = `text-${this.#textNext++}`;
    const calledAt = this.#stage.nowMs();
    judge.updateCalled(message.messageId, message.count, text);
    const answer = await client.update(queue, message, text, prng.pick([0, 1, 3, 6]));
    this.#count("update", answer);
    if (answer.kind === "refused") judge.updateRefused(message.messageId, message.count, answer.code, this.#stage.nowMs());
    if (answer.kind !== "ok") return;
    judge.updated(message.messageId, message.count, calledAt);
    held.push({ queue, message: { ...message, ...answer.value, text } });
  }

  #judge(queue: string): QueueJudge {
    return this.#judges.get(queue) as QueueJudge;
  }

  #count(kind: string, answer: QueueAnswer<unknown>): void {
    this.#stage.count(`${kind} ${answer.kind === "refused" ? answer.code : answer.kind}`);
  }
}
