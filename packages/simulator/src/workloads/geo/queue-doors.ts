/** Ways of clients to the queues of an account at two stamps. */
import type { Prng } from "@stamp/base";
import type { QueueAnswer, QueueDoor, ToldMessage } from "@stamp/histories";
import { BrokenPromise } from "@stamp/virtual-time";
import { QueueClient } from "../clients/queue-client.ts";
import { otherStamp, type StampName, stampNames } from "./location.ts";
import { count, type Scene } from "./stamp-door.ts";

/** Refusals of a stamp that is not the primary, or is not known to be. A write may have happened there. */
const elsewhere: ReadonlySet<string> = new Set(["ServerBusy", "InsufficientAccountPermissions", "InvalidUri"]);

type Clients = Readonly<Record<StampName, QueueClient>>;

function clientsOf({ sim, place }: Pick<Scene, "sim" | "place">, name: string, secondary: boolean): Clients {
  const at = (stamp: StampName): QueueClient => new QueueClient(sim, sim.world(name), name, place.door(stamp, secondary));
  return { north: at("north"), south: at("south") };
}

/**
 * Queues at the stamp that takes writes. After a refusal or without an answer the client asks the other stamp next. It does not look at queues: a
 * drained primary may show a message of a put that was not acknowledged, and that is gone after the failover (docs/design/geo.md "What is open").
 */
export class PrimaryQueues implements QueueDoor {
  readonly #clients: Clients;
  readonly #prng: Prng;
  #at: StampName = "north";

  constructor(scene: Pick<Scene, "sim" | "place">, name: string) {
    this.#clients = clientsOf(scene, name, false);
    this.#prng = scene.sim.prng.fork();
  }

  create(queue: string): Promise<QueueAnswer<void>> {
    return this.#asked((client) => client.create(queue));
  }

  put(queue: string, text: string, hiddenS: number, liveS: number): Promise<QueueAnswer<ToldMessage>> {
    return this.#asked((client) => client.put(queue, text, hiddenS, liveS));
  }

  take(queue: string, number: number, timeoutS: number): Promise<QueueAnswer<readonly ToldMessage[]>> {
    return this.#asked((client) => client.take(queue, number, timeoutS));
  }

  async peek(): Promise<QueueAnswer<readonly ToldMessage[]>> {
    return { kind: "unknown" };
  }

  delete(queue: string, message: ToldMessage): Promise<QueueAnswer<void>> {
    return this.#asked((client) => client.delete(queue, message));
  }

  update(queue: string, message: ToldMessage, text: string, hiddenS: number): ReturnType<QueueDoor["update"]> {
    return this.#asked((client) => client.update(queue, message, text, hiddenS));
  }

  count(queue: string): Promise<QueueAnswer<number>> {
    return this.#asked((client) => client.count(queue));
  }

  async #asked<T>(ask: (client: QueueClient) => Promise<QueueAnswer<T>>): Promise<QueueAnswer<T>> {
    const answer = await ask(this.#clients[this.#at]);
    const isElsewhere = answer.kind === "refused" && elsewhere.has(answer.code);
    if (answer.kind === "ok" || (answer.kind === "refused" && !isElsewhere)) return answer;
    if (this.#prng.chance(0.5)) this.#at = otherStamp(this.#at);
    return { kind: "unknown" };
  }
}

const ledger = "ledger";
/** Largest number of puts: one peek shows as many messages. */
const putsMax = 30;

/** An acknowledged put of the ledger. */
interface Entry {
  readonly text: string;
  readonly insertedS: number;
}

/**
 * A queue of which nothing is taken. One client puts its messages, one after the other; another one peeks at the copies. A copy shows a prefix of
 * the acknowledged messages at every moment, and every message that was inserted before a Last Sync Time that was told.
 */
export class Ledger {
  readonly #scene: Pick<Scene, "sim" | "place" | "tally">;
  readonly #writer: PrimaryQueues;
  readonly #copies: Clients;
  readonly #own: Clients;
  readonly #entries: Entry[] = [];
  #puts = 0;

  constructor(scene: Pick<Scene, "sim" | "place" | "tally">) {
    this.#scene = scene;
    this.#writer = new PrimaryQueues(scene, "ledger-writer");
    this.#copies = clientsOf(scene, "ledger-reader", true);
    this.#own = clientsOf(scene, "ledger-reader", false);
  }

  create(): Promise<QueueAnswer<void>> {
    return this.#writer.create(ledger);
  }

  /** Puts the messages until the time, evenly. */
  async write(endMs: number): Promise<void> {
    const { sim, tally } = this.#scene;
    const pauseMs = (endMs - sim.nowMs) / putsMax;
    while (sim.nowMs < endMs && this.#puts < putsMax) {
      const text = `entry-${++this.#puts}`;
      const put = await this.#writer.put(ledger, text, 0, -1);
      if (put.kind === "ok") this.#entries.push({ text, insertedS: put.value.insertedS });
      count(tally.counts, `entry ${put.kind === "refused" ? put.code : put.kind}`);
      await sim.sleep(pauseMs);
    }
  }

  /** Peeks at the copies until the time. `syncedMs`: largest Last Sync Time that was told, in milliseconds since 1970. */
  async read(endMs: number, pauseMs: number, syncedMs: (stamp: StampName) => Promise<number | undefined>): Promise<void> {
    const { sim } = this.#scene;
    const prng = sim.prng.fork();
    while (sim.nowMs < endMs) {
      await sim.sleep(prng.float() * pauseMs);
      const stamp = prng.pick(stampNames);
      await this.look(stamp, (await syncedMs(stamp)) ?? 0);
    }
  }

  /** Judges what the copy at a stamp shows. Returns the number of entries; undefined: it shows none now. */
  async look(stamp: StampName, syncedMs: number): Promise<number | undefined> {
    const answer = await this.#copies[stamp].peek(ledger);
    const { counts } = this.#scene.tally;
    count(counts, `ledger at the copy ${answer.kind === "refused" ? answer.code : answer.kind}`);
    return answer.kind === "ok" ? this.#judge(`the copy at ${stamp}`, answer.value, syncedMs) : undefined;
  }

  /** After the last fault: a stamp has every entry. True if it says so. */
  async isWhole(stamp: StampName, secondary: boolean): Promise<boolean> {
    const answer = await (secondary ? this.#copies : this.#own)[stamp].peek(ledger);
    if (answer.kind !== "ok") return false;
    return this.#judge(`${secondary ? "the copy at " : ""}${stamp}`, answer.value, 0) === this.#entries.length;
  }

  #judge(where: string, shown: readonly ToldMessage[], syncedMs: number): number {
    const texts = shown.map(({ text }) => text);
    const known = new Map(this.#entries.map(({ text }, at) => [text, at]));
    // A put may be shown before it is acknowledged, and one that was not acknowledged may be anywhere.
    const places = texts.flatMap((text) => known.get(text) ?? []);
    for (const [at, place] of places.entries())
      if (place !== at) throw new BrokenPromise(`${where} shows of the ledger ${texts.join(" ")}: ${this.#entries[at]?.text} is missing`);
    const missing = this.#entries[places.length];
    // Times of messages are whole seconds, rounded down.
    if (missing !== undefined && (missing.insertedS + 1) * 1_000 <= syncedMs)
      throw new BrokenPromise(`${where} lacks ${missing.text} of ${missing.insertedS} s, before Last Sync Time ${syncedMs} ms`);
    return places.length;
  }
}
