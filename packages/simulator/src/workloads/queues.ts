/**
 * Several clients put, take, update and delete the messages of two queues, some slowly, so that others take the same messages after them,
 * while faults come. Then everything heals, the queues are emptied, and what is promised of messages must have been kept (queue-judge.ts).
 */
import type { Prng } from "@stamp/base";
import type { Tally } from "../cli/run-seed.ts";
import type { Simulation } from "../simulation.ts";
import { BrokenPromise } from "../simulation.ts";
import { simulatedCluster } from "./cluster.ts";
import type { Focus } from "./faults.ts";
import { Faults } from "./faults.ts";
import { type QueueAnswer, QueueClient, type ToldMessage } from "./queue-client.ts";
import { QueueJudge } from "./queue-judge.ts";

const clientCount = 4;
const operationsPerClient = 70;
const pauseMaxMs = 700;
const workMs = (operationsPerClient * pauseMaxMs) / 2;
const readyWithinMs = 60_000;
/** After the last fault everything is served again, and every message is found, within this. */
const healedWithinMs = 120_000;
const queues = ["left", "right"] as const;
/** What it does for a while after it took them. */
const heldMax = 12;
/** Taken so long when the queues are emptied: an answer that is lost then hides a message no longer than there is time for. */
const emptyingS = 10;

export async function queueWorkload(sim: Simulation, tally: Tally, focus?: Focus): Promise<void> {
  const cluster = simulatedCluster(sim);
  await sim.until(() => cluster.ready(), readyWithinMs, "the cluster is ready");
  const run = new Run(sim, tally);
  const names = Array.from({ length: clientCount }, (_, i) => `client-${i + 1}`);
  const clients = names.map((name) => new QueueClient(sim, sim.world(name), name, cluster));
  const faults = new Faults(sim, { targets: cluster.processes, clients: [], pace: 5, focus, withinMs: workMs });
  tally.faults = faults.counts;
  const first = clients[0] as QueueClient;
  for (const queue of queues) await run.until("a queue is made", async () => (await first.create(queue)).kind === "ok");
  faults.start();
  await Promise.all(clients.map((client) => run.work(client, sim.prng.fork())));
  await faults.heal();
  for (const queue of queues) await run.empty(first, queue);
}

interface Held extends ToldMessage {
  /** Which hand-out's receipt it is; an update gives another one for the same. */
  readonly count: number;
}

class Run {
  readonly #sim: Simulation;
  readonly #tally: Tally;
  readonly #judges = new Map(queues.map((queue) => [queue as string, new QueueJudge(queue)]));
  #textNext = 1;

  constructor(sim: Simulation, tally: Tally) {
    this.#sim = sim;
    this.#tally = tally;
  }

  async work(client: QueueClient, prng: Prng): Promise<void> {
    const held: { readonly queue: string; readonly message: Held }[] = [];
    for (let i = 0; i < operationsPerClient; i++) {
      await this.#sim.sleep(prng.float() * pauseMaxMs);
      const queue = prng.pick(queues);
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

  /** After the last fault: what is there is taken and deleted until nothing is missing, and then the count is 0. */
  async empty(client: QueueClient, queue: string): Promise<void> {
    const judge = this.#judge(queue);
    let lost: string[] = [];
    await this.until(`${queue} gives every message`, async () => {
      const found: { queue: string; message: Held }[] = [];
      if ((await this.#take(client, queue, 32, emptyingS, found)) !== "ok") return false;
      for (const { message } of found) while ((await this.#delete(client, queue, message)) === "unknown") await this.#sim.sleep(200);
      lost = judge.missing();
      return found.length === 0 && lost.length === 0;
    }).catch((error: unknown) => {
      throw lost.length > 0 ? new BrokenPromise(`${queue}: lost ${lost.join(", ")}`) : error;
    });
    // Puts whose answer was lost may still be hidden: they are taken as they come.
    await this.until(`${queue} counts nothing`, async () => {
      const found: { queue: string; message: Held }[] = [];
      await this.#take(client, queue, 32, emptyingS, found);
      for (const { message } of found) await this.#delete(client, queue, message);
      const count = await client.count(queue);
      return count.kind === "ok" && count.value === 0;
    });
  }

  async until(what: string, attempt: () => Promise<boolean>): Promise<void> {
    const endMs = this.#sim.nowMs + healedWithinMs;
    while (!(await attempt())) {
      if (this.#sim.nowMs > endMs) throw new BrokenPromise(`not within ${healedWithinMs} ms after the last fault: ${what}`);
      await this.#sim.sleep(500);
    }
  }

  async #put(client: QueueClient, queue: string, prng: Prng, held: { queue: string; message: Held }[]): Promise<void> {
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
    client: QueueClient,
    queue: string,
    count: number,
    timeoutS: number,
    held: { queue: string; message: Held }[],
  ): Promise<string> {
    const calledAt = this.#sim.nowMs;
    const answer = await client.take(queue, count, timeoutS);
    this.#count("take", answer);
    if (answer.kind !== "ok") return answer.kind;
    if (answer.value.length > count) throw new BrokenPromise(`${queue}: ${answer.value.length} messages where ${count} were asked for`);
    for (const message of answer.value) {
      this.#judge(queue).taken(message, timeoutS, calledAt, this.#sim.nowMs);
      held.push({ queue, message: { ...message, count: message.dequeueCount } });
    }
    this.#tally.counts["messages taken"] = (this.#tally.counts["messages taken"] ?? 0) + answer.value.length;
    return "ok";
  }

  async #peek(client: QueueClient, queue: string): Promise<void> {
    const calledAt = this.#sim.nowMs;
    const answer = await client.peek(queue);
    this.#count("peek", answer);
    if (answer.kind === "ok") for (const message of answer.value) this.#judge(queue).peeked(message, calledAt);
  }

  async #delete(client: QueueClient, queue: string, message: Held): Promise<string> {
    const judge = this.#judge(queue);
    const calledAt = this.#sim.nowMs;
    judge.deleteCalled(message.messageId);
    const answer = await client.delete(queue, message);
    this.#count("delete", answer);
    if (answer.kind === "ok") judge.deleted(message.messageId, message.count, calledAt, this.#sim.nowMs);
    if (answer.kind === "refused") judge.deleteRefused(message.messageId);
    return answer.kind;
  }

  async #update(client: QueueClient, queue: string, message: Held, prng: Prng, held: { queue: string; message: Held }[]): Promise<void> {
    const judge = this.#judge(queue);
    const text = `text-${this.#textNext++}`;
    const calledAt = this.#sim.nowMs;
    judge.updateCalled(message.messageId, message.count, text);
    const answer = await client.update(queue, message, text, prng.pick([0, 1, 3, 6]));
    this.#count("update", answer);
    if (answer.kind !== "ok") return;
    judge.updated(message.messageId, message.count, calledAt);
    held.push({ queue, message: { ...message, ...answer.value, text } });
  }

  #judge(queue: string): QueueJudge {
    return this.#judges.get(queue) as QueueJudge;
  }

  #count(kind: string, answer: QueueAnswer<unknown>): void {
    const name = `${kind} ${answer.kind === "refused" ? answer.code : answer.kind}`;
    this.#tally.counts[name] = (this.#tally.counts[name] ?? 0) + 1;
  }
}
