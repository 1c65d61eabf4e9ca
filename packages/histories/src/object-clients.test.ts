/** Recording clients and their judge: an honest service is believed, each kind of lie is found, and so is a history that was changed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Prng } from "@stamp/base";
import { type BlobCall, checkBlob, type RecordedOperation } from "@stamp/linearizability";
import { ObjectClients } from "./object-clients.ts";
import type { Answer, BlobCondition, BlobDoor } from "./object-door.ts";
import { BrokenPromise } from "./stage.ts";
import { virtualStage } from "./testing/stage.ts";

interface Held {
  readonly etag: string;
  readonly bytes: Uint8Array;
}

interface Lie {
  /** An acknowledged put that is not kept. */
  readonly loses?: boolean;
  /** A read that shows what was there before the last write. */
  readonly stale?: boolean;
  readonly ignoresConditions?: boolean;
  /** A list without a blob that is there. */
  readonly leavesOut?: boolean;
  /** Bytes of which the end is another write's. */
  readonly mixes?: boolean;
}

/** One answer in so many is a lie. */
const lieOneIn = 3;

class Service implements BlobDoor {
  readonly #lie: Lie;
  readonly #prng: Prng;
  readonly #pause: () => Promise<void>;
  readonly #containers = new Map<string, Map<string, Held>>();
  readonly #before = new Map<string, Held>();
  #etag = 0;

  constructor(lie: Lie, prng: Prng, pause: () => Promise<void>) {
    this.#lie = lie;
    this.#prng = prng;
    this.#pause = pause;
  }

  createContainer(container: string): Promise<Answer> {
    return this.#at(() => {
      if (this.#containers.has(container)) return { kind: "exists" };
      this.#containers.set(container, new Map());
      return { kind: "ok" };
    });
  }

  deleteContainer(container: string): Promise<Answer> {
    return this.#at(() => (this.#containers.delete(container) ? { kind: "ok" } : { kind: "noContainer" }));
  }

  put(container: string, blob: string, bytes: Uint8Array, condition: BlobCondition): Promise<Answer> {
    return this.#write(container, blob, condition, (blobs) => {
      const etag = `"${++this.#etag}"`;
      const held = blobs.get(blob);
      if (held) this.#before.set(`${container}/${blob}`, held);
      if (!this.#lies("loses")) blobs.set(blob, { etag, bytes });
      return { kind: "ok", etag };
    });
  }

  get(container: string, blob: string): Promise<Answer<Held>> {
    return this.#at((): Answer<Held> => {
      const blobs = this.#containers.get(container);
      const held = blobs?.get(blob);
      if (!held) return { kind: blobs ? "noBlob" : "noContainer" };
      const before = this.#before.get(`${container}/${blob}`);
      if (before && this.#lies("stale")) return { kind: "ok", ...before };
      if (before && this.#lies("mixes")) return { kind: "ok", etag: held.etag, bytes: Uint8Array.of(...held.bytes.subarray(0, 12), 7) };
      return { kind: "ok", ...held };
    });
  }

  delete(container: string, blob: string, condition: BlobCondition): Promise<Answer> {
    return this.#write(container, blob, condition, (blobs) => ({ kind: blobs.delete(blob) ? "ok" : "noBlob" }));
  }

  list(container: string): Promise<Answer<{ readonly etags: ReadonlyMap<string, string> }>> {
    return this.#at((): Answer<{ readonly etags: ReadonlyMap<string, string> }> => {
      const blobs = this.#containers.get(container);
      if (!blobs) return { kind: "noContainer" };
      const shown = [...blobs].slice(this.#lies("leavesOut") ? 1 : 0);
      return { kind: "ok", etags: new Map(shown.map(([name, { etag }]) => [name, etag])) };
    });
  }

  #write(container: string, blob: string, condition: BlobCondition, done: (blobs: Map<string, Held>) => Answer): Promise<Answer> {
    return this.#at(() => {
      const blobs = this.#containers.get(container);
      if (!blobs) return { kind: "noContainer" };
      const held = blobs.get(blob);
      if (!this.#lies("ignoresConditions")) {
        if (condition.kind === "absent" && held) return { kind: "exists" };
        if (condition.kind === "match" && held?.etag !== condition.etag) return { kind: held ? "conditionNotMet" : "noBlob" };
      }
      return done(blobs);
    });
  }

  #lies(how: keyof Lie): boolean {
    return this.#lie[how] === true && this.#prng.below(lieOneIn) === 0;
  }

  /** Something happens between the call and its answer; some answers are lost, some calls are not carried out. */
  async #at<T>(act: () => Answer<T>): Promise<Answer<T>> {
    await this.#pause();
    const dice = this.#prng.below(40);
    if (dice === 0) return { kind: "unknown" };
    if (dice === 1) return { kind: "notDone", why: "busy" };
    const answer = act();
    await this.#pause();
    return dice === 2 ? { kind: "unknown" } : answer;
  }
}

/** Returns the breach in the history of such a service; undefined if there is none. */
async function judge(lie: Lie, seed: number): Promise<string | undefined> {
  const stage = virtualStage();
  const prng = new Prng(seed);
  const service = new Service(lie, prng.fork(), () => stage.sleep(prng.float() * 5));
  const clients = new ObjectClients(stage, new Map([["c", ["a", "b"]]]), { pauseMaxMs: 10, lengthBytesMax: 64 });
  try {
    await stage.run(clients.createContainer(service, "c"));
    await stage.run(Promise.all([0, 1, 2].map(() => clients.work(service, prng.fork(), (operations) => operations < 120))));
    await stage.run(clients.readBack(service, prng, 10_000));
  } catch (error) {
    if (error instanceof BrokenPromise) return error.message;
    throw error;
  }
  assert.deepEqual(clients.history.undecided, []);
  return clients.history.check();
}

const seeds = [1, 2, 3];

test("recording clients, an honest service that loses answers: nothing is wrong", async () => {
  for (const seed of seeds) assert.equal(await judge({}, seed), undefined, `seed ${seed}`);
});

for (const lie of ["loses", "stale", "ignoresConditions", "leavesOut", "mixes"] as const) {
  test(`recording clients, a service that lies (${lie}): found`, async () => {
    for (const seed of seeds) assert.notEqual(await judge({ [lie]: true }, seed), undefined, `seed ${seed}`);
  });
}

test("a history of which one answer was changed is refused", () => {
  const history: RecordedOperation<BlobCall>[] = [1, 2, 3].flatMap((write): RecordedOperation<BlobCall>[] => [
    {
      call: { kind: "put", write, condition: { kind: "none" }, answer: { kind: "ok", etag: `"${write}"` } },
      calledAt: 10 * write,
      returnedAt: 10 * write + 3,
    },
    { call: { kind: "get", answer: { kind: "ok", etag: `"${write}"`, write } }, calledAt: 10 * write + 5, returnedAt: 10 * write + 8 },
  ]);
  assert.equal(checkBlob(history, true).kind, "linearizable");
  const tampered = history.with(5, {
    ...(history[5] as RecordedOperation<BlobCall>),
    call: { kind: "get", answer: { kind: "ok", etag: '"2"', write: 2 } },
  });
  assert.equal(checkBlob(tampered, true).kind, "violation");
});
