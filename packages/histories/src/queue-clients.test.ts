/** Clients of queues and their judges: an honest queue is believed, each kind of lie is found. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import { QueueClients } from "./queue-clients.ts";
import type { QueueAnswer, QueueDoor, ToldMessage } from "./queue-door.ts";
import { BrokenPromise } from "./stage.ts";
import { virtualStage } from "./testing/stage.ts";

interface Lie {
  readonly losesPut?: boolean;
  /** A delete that is answered and not kept. */
  readonly keepsDeleted?: boolean;
  /** Handed out while it is hidden. */
  readonly showsHidden?: boolean;
  /** A hand-out that the queue forgets: the next one has the same count. */
  readonly forgetsTake?: boolean;
  /** An old receipt is as good as the newest. */
  readonly takesOldReceipts?: boolean;
}

interface Held {
  messageId: string;
  text: string;
  count: number;
  receipt: string;
  visibleMs: number;
  insertedMs: number;
  expiresMs: number;
}

const lieOneIn = 4;
const farS = 253_402_300_799;

class Queue implements QueueDoor {
  readonly #lie: Lie;
  readonly #prng: Prng;
  readonly #nowMs: () => number;
  readonly #pause: () => Promise<void>;
  readonly #messages = new Map<string, Held>();
  #next = 1;

  constructor(lie: Lie, prng: Prng, nowMs: () => number, pause: () => Promise<void>) {
    this.#lie = lie;
    this.#prng = prng;
    this.#nowMs = nowMs;
    this.#pause = pause;
  }

  create(): Promise<QueueAnswer<void>> {
    return this.#at(() => undefined);
  }

  put(_queue: string, text: string, hiddenS: number, liveS: number): Promise<QueueAnswer<ToldMessage>> {
    return this.#at(() => {
      const nowMs = this.#nowMs();
      const number = this.#next++;
      const held: Held = {
        messageId: `m${number}`,
        text,
        count: 0,
        receipt: `r${number}-0`,
        visibleMs: nowMs + hiddenS * 1_000,
        insertedMs: nowMs,
        expiresMs: liveS < 0 ? farS * 1_000 : nowMs + liveS * 1_000,
      };
      if (!this.#lies("losesPut")) this.#messages.set(held.messageId, held);
      return toldOf(held);
    });
  }

  take(_queue: string, count: number, timeoutS: number): Promise<QueueAnswer<readonly ToldMessage[]>> {
    return this.#at(() => {
      const nowMs = this.#nowMs();
      const found = this.#alive().filter((held) => held.visibleMs <= nowMs || this.#lies("showsHidden"));
      return found.slice(0, count).map((held) => {
        const before = { ...held };
        held.count++;
        held.visibleMs = nowMs + timeoutS * 1_000;
        held.receipt = `${held.messageId}-${held.count}`;
        const told = toldOf(held);
        if (this.#lies("forgetsTake")) Object.assign(held, before);
        return told;
      });
    });
  }

  peek(): Promise<QueueAnswer<readonly ToldMessage[]>> {
    return this.#at(() =>
      this.#alive()
        .filter(({ visibleMs }) => visibleMs <= this.#nowMs())
        .slice(0, 32)
        .map((held) => ({ ...toldOf(held), visibleS: 0 })),
    );
  }

  delete(_queue: string, message: ToldMessage): Promise<QueueAnswer<void>> {
    return this.#at(() => {
      const held = this.#held(message);
      if (typeof held === "string") return new Refused(held);
      if (!this.#lies("keepsDeleted")) this.#messages.delete(held.messageId);
      return undefined;
    });
  }

  update(_queue: string, message: ToldMessage, text: string, hiddenS: number) {
    return this.#at(() => {
      const held = this.#held(message);
      if (typeof held === "string") return new Refused(held);
      held.text = text;
      held.visibleMs = this.#nowMs() + hiddenS * 1_000;
      held.receipt = `${held.receipt}u`;
      return { popReceipt: held.receipt, visibleS: Math.floor(held.visibleMs / 1_000) };
    });
  }

  count(): Promise<QueueAnswer<number>> {
    return this.#at(() => this.#alive().length);
  }

  #alive(): Held[] {
    return [...this.#messages.values()].filter(({ expiresMs }) => expiresMs > this.#nowMs()).sort((a, b) => a.visibleMs - b.visibleMs);
  }

  #held({ messageId, popReceipt }: ToldMessage): Held | string {
    const held = this.#alive().find((each) => each.messageId === messageId);
    return held !== undefined && (held.receipt === popReceipt || this.#lie.takesOldReceipts === true) ? held : "MessageNotFound";
  }

  #lies(how: keyof Lie): boolean {
    return this.#lie[how] === true && this.#prng.below(lieOneIn) === 0;
  }

  /** Something happens between the call and its answer; some answers are lost, some calls are not carried out. */
  async #at<T>(act: () => T | Refused): Promise<QueueAnswer<T>> {
    await this.#pause();
    const dice = this.#prng.below(40);
    if (dice === 0) return { kind: "unknown" };
    if (dice === 1) return { kind: "refused", code: "ServerBusy" };
    const value = act();
    await this.#pause();
    if (dice === 2) return { kind: "unknown" };
    return value instanceof Refused ? { kind: "refused", code: value.code } : { kind: "ok", value };
  }
}

class Refused {
  readonly code: string;
  constructor(code: string) {
    this.code = code;
  }
}

const secondsOf = (ms: number): number => Math.floor(ms / 1_000);

const toldOf = (held: Held): ToldMessage => ({
  messageId: held.messageId,
  popReceipt: held.receipt,
  dequeueCount: held.count,
  text: held.text,
  visibleS: secondsOf(held.visibleMs),
  insertedS: secondsOf(held.insertedMs),
  expiresS: secondsOf(held.expiresMs),
});

async function judge(lie: Lie, seed: number): Promise<string | undefined> {
  const stage = virtualStage();
  const prng = new Prng(seed);
  const queue = new Queue(lie, prng.fork(), stage.nowMs, () => stage.sleep(prng.float() * 50));
  const clients = new QueueClients(stage, ["q"], 300);
  try {
    await stage.run(Promise.all([0, 1, 2].map(() => clients.work(queue, prng.fork(), (operations) => operations < 120))));
    await stage.run(clients.empty(queue, "q", 60_000));
  } catch (error) {
    if (error instanceof BrokenPromise) return error.message;
    throw error;
  }
  return undefined;
}

const seeds = [1, 2, 3];

test("clients of a queue, an honest one that loses answers: nothing is wrong", async () => {
  for (const seed of seeds) assert.equal(await judge({}, seed), undefined, `seed ${seed}`);
});

const lies: Readonly<Record<keyof Lie, RegExp>> = {
  losesPut: /lost|not within/,
  keepsDeleted: /seen after its deletion was answered|after its deletion|counts nothing/,
  showsHidden: /hidden until/,
  forgetsTake: /handed out twice/,
  takesOldReceipts: /by hand-out \d+ after hand-out|after its deletion was answered|says/,
};

for (const [lie, complaint] of Object.entries(lies)) {
  test(`clients of a queue that lies (${lie}): found`, async () => {
    for (const seed of seeds) assert.match((await judge({ [lie]: true }, seed)) ?? "nothing", complaint, `seed ${seed}`);
  });
}
