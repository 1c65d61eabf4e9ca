/**
 * Several clients put, get, update under If-Match, delete and list a few blobs in a few containers, which are deleted and made again at
 * times. What each saw is recorded; one order of all operations must explain every answer (`history.check()`).
 */
import type { Prng } from "@stamp/base";
import type { BlobAnswer, BlobCall, BlobCondition as Condition } from "@stamp/linearizability";
import type { Answer, BlobDoor } from "./object-door.ts";
import { BlobHistory, contentOf, isBlobAnswer, writeOf } from "./object-history.ts";
import type { HistoryStage } from "./stage.ts";
import { BrokenPromise, until } from "./stage.ts";

export interface ObjectClientsOptions {
  /** Longest pause between two operations of a client. */
  readonly pauseMaxMs: number;
  readonly containersAtStart?: boolean;
  /**
   * Containers are deleted and made again by one of so many of the four operations of a hundred that may; 0 for none.
   */
  readonly recreateOneIn?: number;
  readonly lengthBytesMax?: number;
  /** False if the door can't delete under If-Match. */
  readonly conditionalDeletes?: boolean;
}

/** Several clients of the same few names, with all their observations. */
export class ObjectClients {
  readonly history: BlobHistory;
  readonly #stage: HistoryStage;
  readonly #names: ReadonlyMap<string, readonly string[]>;
  readonly #options: ObjectClientsOptions;
  readonly #etags = new Map<string, string>();
  #writeNext = 1;

  constructor(stage: HistoryStage, names: ReadonlyMap<string, readonly string[]>, options: ObjectClientsOptions) {
    this.#stage = stage;
    this.#names = names;
    this.#options = options;
    this.history = new BlobHistory(names, options.containersAtStart);
  }

  /** Runs one client while `goesOn(operations so far)` is true. */
  async work(client: BlobDoor, prng: Prng, goesOn: (operations: number) => boolean): Promise<void> {
    const { pauseMaxMs, recreateOneIn = 1 } = this.#options;
    for (let i = 0; goesOn(i); i++) {
      await this.#stage.sleep(prng.float() * pauseMaxMs);
      const container = prng.pick([...this.#names.keys()]);
      const blob = prng.pick(this.#names.get(container) as readonly string[]);
      const dice = prng.below(100);
      if (dice < 30) await this.#put(client, container, blob, prng, { kind: "none" });
      else if (dice < 45) await this.#put(client, container, blob, prng, this.#match(container, blob));
      else if (dice < 50) await this.#put(client, container, blob, prng, { kind: "absent" });
      else if (dice < 80) await this.get(client, container, blob);
      else if (dice < 86) await this.#delete(client, container, blob, { kind: "none" });
      else if (dice < 90) {
        const condition: Condition = this.#options.conditionalDeletes === false ? { kind: "none" } : this.#match(container, blob);
        await this.#delete(client, container, blob, condition);
      } else if (dice < 96) await this.#list(client, container);
      else if (recreateOneIn === 1 || (recreateOneIn > 1 && prng.below(recreateOneIn) === 0)) {
        await this.#deleteContainer(client, container);
        await this.#stage.sleep(prng.float() * 300);
        await this.createContainer(client, container);
      }
    }
  }

  async createContainer(client: BlobDoor, container: string): Promise<void> {
    await this.#seen(
      container,
      undefined,
      () => client.createContainer(container),
      (answer) => ({ kind: "createContainer", answer }),
    );
  }

  /** Reads every name twice after the last fault: both answers and the listing must agree. */
  async readBack(client: BlobDoor, prng: Prng, withinMs: number): Promise<void> {
    const endMs = this.#stage.nowMs() + withinMs;
    const retried = (what: string, attempt: () => Promise<boolean>): Promise<void> =>
      until(this.#stage, what, { withinMs: endMs - this.#stage.nowMs(), pauseMs: 200 }, attempt);
    for (const [container, blobs] of this.#names) {
      let seen = "";
      const agree = async (): Promise<boolean> => {
        const present: string[] = [];
        for (const blob of blobs) {
          await retried(`get ${container}/${blob}`, async () => {
            const answer = await this.get(client, container, blob);
            if (answer === "ok") present.push(blob);
            return answer !== "unknown" && answer !== "notDone";
          });
        }
        const listed = await this.#list(client, container);
        if (listed === undefined) return false;
        const [lists, reads] = [listed, present].map((names) => names.sort().join(","));
        seen = `lists [${lists}], reads see [${reads}]`;
        return lists === reads;
      };
      // A delete that its client gave up may be done in between; two that differ for good don't become the same.
      await retried(`${container} lists what reads see`, agree).catch((error: unknown) => {
        throw error instanceof BrokenPromise ? new BrokenPromise(`${error.message}: ${seen}`) : error;
      });
      // It still takes writes.
      await retried(`put ${container}`, async () => {
        await this.createContainer(client, container);
        return (await this.#put(client, container, blobs[0] as string, prng, { kind: "none" })) === "ok";
      });
    }
  }

  async get(client: BlobDoor, container: string, blob: string): Promise<string> {
    return this.#seen(
      container,
      blob,
      async () => {
        const answer = await client.get(container, blob);
        if (answer.kind !== "ok" || !("bytes" in answer)) return answer;
        this.#etags.set(`${container}/${blob}`, answer.etag);
        return { kind: "ok", etag: answer.etag, write: writeOf(answer.bytes, `${container}/${blob}`) };
      },
      (answer) => ({ kind: "get", answer }),
    );
  }

  #match(container: string, blob: string): Condition {
    const etag = this.#etags.get(`${container}/${blob}`);
    return etag === undefined ? { kind: "none" } : { kind: "match", etag };
  }

  async #put(client: BlobDoor, container: string, blob: string, prng: Prng, condition: Condition): Promise<string> {
    const write = this.#writeNext++;
    const size = prng.below(100);
    const lengthBytes = size < 60 ? 12 + prng.below(2_000) : size < 90 ? prng.below(60_000) : prng.below(400_000);
    const bytes = contentOf(write, Math.min(lengthBytes, this.#options.lengthBytesMax ?? lengthBytes));
    return this.#seen(
      container,
      blob,
      async () => {
        const answer = await client.put(container, blob, bytes, condition);
        if (answer.kind === "ok" && "etag" in answer && answer.etag !== undefined) this.#etags.set(`${container}/${blob}`, answer.etag);
        return answer;
      },
      (answer) => ({ kind: "put", write, condition, answer }),
    );
  }

  async #delete(client: BlobDoor, container: string, blob: string, condition: Condition): Promise<void> {
    await this.#seen(
      container,
      blob,
      () => client.delete(container, blob, condition),
      (answer) => ({ kind: "delete", condition, answer }),
    );
  }

  async #deleteContainer(client: BlobDoor, container: string): Promise<void> {
    await this.#seen(
      container,
      undefined,
      () => client.deleteContainer(container),
      (answer) => ({ kind: "deleteContainer", answer }),
    );
  }

  /** Returns the listed names; a listing counts as a read of every name. */
  async #list(client: BlobDoor, container: string): Promise<string[] | undefined> {
    const calledAt = this.#stage.nowMs();
    const answer = await client.list(container);
    const returnedAt = this.#stage.nowMs();
    this.#count("list", answer.kind);
    if (answer.kind === "noContainer") return [];
    if (answer.kind !== "ok" || !("etags" in answer)) return undefined;
    for (const blob of this.#names.get(container) ?? []) {
      const etag = answer.etags.get(blob);
      const saw: BlobAnswer = etag === undefined ? { kind: "noBlob" } : { kind: "ok", etag };
      this.history.blob(container, blob, { call: { kind: "get", answer: saw }, calledAt, returnedAt });
    }
    return [...answer.etags.keys()];
  }

  async #seen(
    container: string,
    blob: string | undefined,
    act: () => Promise<Answer>,
    toCall: (answer: BlobAnswer) => BlobCall,
  ): Promise<string> {
    const calledAt = this.#stage.nowMs();
    const answer = await act();
    const returnedAt = answer.kind === "unknown" ? undefined : this.#stage.nowMs();
    const known: BlobAnswer = isBlobAnswer(answer) ? answer : { kind: "unknown" };
    const call = toCall(known);
    this.#count(call.kind, answer.kind);
    if (!isBlobAnswer(answer)) return answer.kind;
    if (blob === undefined) this.history.container(container, { call, calledAt, returnedAt });
    else this.history.blob(container, blob, { call, calledAt, returnedAt });
    return answer.kind;
  }

  #count(kind: string, answer: string): void {
    this.#stage.count(`${kind} ${answer}`);
  }
}
