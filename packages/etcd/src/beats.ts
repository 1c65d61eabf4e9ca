/**
 * Beats of the active lock service (decision 0416): a key in etcd of each election, written again before answers are given that nothing else in
 * etcd tells of. A standby that looks at it knows after its own election until when its predecessor can have judged a renewal.
 *
 *     active    judges ── beat or batch, at most `beatEveryMs` ago? ──yes──► reads its election key ──► answers
 *                                          └──no──► writes the beat key ──────────────────────────────► answers
 *     standby   looks at election, beat and batch ... is elected ── beat and batch as they were seen? ──► the predecessor answered nothing that it
 *                                                                   judged more than `beatEveryMs` after the first of the looks that saw them so
 *
 * Invariants (model/lock-services.pml, rules BEAT, SAME, NEXT):
 *   - The key is created with the election key, in one transaction, and written only while it has that create revision: no late attempt brings a key
 *     back that was removed.
 *   - An answer without a beat is judged less than `beatEveryMs` after the sending of a beat or batch that etcd has answered.
 *   - If etcd has no room for beats, the key is removed before anything is answered without one: nobody then knows a moment.
 *   - A process that has nothing to answer beats all the same, so that standbys do not take it for dead.
 *   - What was seen counts only if, after the election, beat and batch are as they were seen, and nobody was elected in between.
 */
import { FailureError, fromUtf8, type Outcome, ok, type Rules, utf8 } from "@stamp/base";
import { type EtcdClient, isOfTheRequest } from "./etcd-client.ts";
import { createdAt, modifiedAt, put, read, remove } from "./operations.ts";
import type { EtcdKeys } from "./options.ts";

/** Time after the sending of the last beat in which answers need none, in milliseconds. */
export const beatEveryMs = 200;
/** Factor by which the clock of the beating process may be slower than the clock of the looking one. */
const clockFactor = 1.25;

export const encodeBeat = (count: number): Uint8Array => utf8(JSON.stringify({ count, everyMs: beatEveryMs }));

/**
 * Returns the longest time after the last beat in which its process answered without another one, in milliseconds; undefined if the value tells
 * none.
 */
function everyMsOf(value: Uint8Array): number | undefined {
  try {
    const { everyMs } = JSON.parse(fromUtf8(value)) as { everyMs?: unknown };
    return typeof everyMs === "number" && everyMs >= 0 && everyMs <= 60_000 ? everyMs : undefined;
  } catch {
    return undefined;
  }
}

/** Election session of the lock service that beats. */
export interface BeatingSession {
  readonly client: EtcdClient;
  readonly keys: EtcdKeys;
  readonly createRevision: bigint;
  readonly attempt: string;
  readonly ended: AbortSignal;
}

export type BeatResult = "elected" | "deposed";

/** Beats of one election, by the process that was elected. */
export class Beats {
  readonly #session: BeatingSession;
  readonly #rules: Rules;
  readonly #key: Uint8Array;
  #count = 0;
  /** Sending of the last beat or batch that etcd answered, by the monotonic clock. */
  #sentMs: number | undefined;
  /** True if the key is gone for this election: a successor extends every lease by a full term. */
  #removed = false;

  constructor(session: BeatingSession, rules: Rules) {
    this.#session = session;
    this.#rules = rules;
    this.#key = session.keys.beat(session.attempt);
  }

  /** True if what was judged until now may be answered after a read. */
  get fresh(): boolean {
    if (this.#removed || !this.#rules.on("answersBeat")) return true;
    return this.#sentMs !== undefined && this.#session.client.world.clock.monotonicMs() - this.#sentMs < beatEveryMs;
  }

  /** Notes that a batch that was first sent then has been written. */
  wrote(sentMs: number): void {
    this.#sentMs = Math.max(this.#sentMs ?? sentMs, sentMs);
  }

  /** Beats, if nothing was sent in this time that etcd has answered, in milliseconds. */
  async beatIfOlder(ageMs: number): Promise<void> {
    if (this.#removed || !this.#rules.on("answersBeat")) return;
    if (this.#sentMs === undefined || this.#session.client.world.clock.monotonicMs() - this.#sentMs >= ageMs) await this.beat();
  }

  /** Beats until etcd has answered; tells whether this process was still elected. Throws FailureError if etcd refuses it for what it is. */
  async beat(): Promise<BeatResult> {
    const { client, createRevision, ended, keys } = this.#session;
    const isElected = createdAt(keys.active, createRevision);
    for (let tries = 0; ; tries++) {
      if (ended.aborted) return "deposed";
      const sentMs = client.world.clock.monotonicMs();
      const request = {
        compare: [isElected, createdAt(this.#key, createRevision)],
        success: [put(this.#key, encodeBeat(this.#count + 1))],
        failure: [read(keys.active)],
      };
      const answer = await client.once(({ kv }, options) => kv.txn(request, options));
      if (answer.ok && answer.value.succeeded) {
        this.#count += 1;
        this.wrote(sentMs);
        return "elected";
      }
      if (answer.ok) {
        if (createRevisionIn(answer.value.responses[0]) !== createRevision) return "deposed";
        this.#removed = true;
        return "elected";
      }
      if (answer.failure.reason === "diskFull") {
        const removed = await this.#remove(isElected);
        if (removed !== undefined) return removed;
      } else if (isOfTheRequest(answer.failure)) throw new FailureError(answer.failure);
      else await client.pause(tries, ended);
    }
  }

  /** Removes keys: etcd without room takes no values, not even in an untaken branch, but removals. Undefined: no answer. */
  async #remove(isElected: ReturnType<typeof createdAt>): Promise<BeatResult | undefined> {
    const { client, ended } = this.#session;
    const request = { compare: [isElected], success: [remove(this.#key)], failure: [] };
    const answer = await client.once(({ kv }, options) => kv.txn(request, options));
    if (answer.ok && !answer.value.succeeded) return "deposed";
    this.#removed = answer.ok;
    if (answer.ok) return "elected";
    await client.pause(2, ended);
    return undefined;
  }
}

interface Found {
  readonly kvs: readonly {
    readonly key: Uint8Array;
    readonly value: Uint8Array;
    readonly createRevision: bigint;
    readonly modRevision: bigint;
  }[];
}
interface Response {
  readonly response: { readonly case?: string | undefined; readonly value?: unknown };
}
const foundIn = (response: Response | undefined): Found["kvs"][number] | undefined =>
  (response?.response.value as Found | undefined)?.kvs[0];
const createRevisionIn = (response: Response | undefined): bigint | undefined => foundIn(response)?.createRevision;

/** State of election, beat and batch as a standby saw them. */
export interface StandbySight {
  readonly attempt: string;
  /** Create revision of the election key. */
  readonly createRevision: bigint;
  readonly beatRevision: bigint;
  readonly batchRevision: bigint;
  readonly everyMs: number;
  /** Time of the first look with this answer, by the monotonic clock of the standby. */
  readonly sinceMs: number;
  /** Revision of etcd at the last look. */
  readonly revision: bigint;
}

/** Key of the store that a standby reads with each look at the active process. */
export interface WatchedKey {
  /** Key in the store, without the prefix of the store's keys. */
  readonly key: Uint8Array;
  /** Called with the key's value after each look; undefined: there is none. */
  readonly seen: (value: Uint8Array | undefined) => void;
}

/** Looks at the active process; returns what is seen, with the time of the look before if nothing has changed. Undefined: it does not beat. */
export async function lookAtBeats(
  client: EtcdClient,
  keys: EtcdKeys,
  attempt: string,
  before: StandbySight | undefined,
  watched: WatchedKey | undefined,
): Promise<Outcome<StandbySight | undefined>> {
  const more = watched === undefined ? [] : [read(keys.stored(watched.key))];
  const request = { compare: [], success: [read(keys.active), read(keys.beat(attempt)), read(keys.batch), ...more], failure: [] };
  const answer = await client.once(({ kv }, options) => kv.txn(request, options));
  if (!answer.ok) return answer;
  const [active, beat, batch, stored] = answer.value.responses.map(foundIn);
  watched?.seen(stored?.value);
  const revision = answer.value.header?.revision ?? 0n;
  if (active === undefined) return ok(before?.attempt === attempt ? before : undefined);
  const everyMs = beat && everyMsOf(beat.value);
  if (beat === undefined || everyMs === undefined || beat.createRevision !== active.createRevision)
    return ok<StandbySight | undefined>(undefined);
  const seen = {
    ...{ attempt, createRevision: active.createRevision, beatRevision: beat.modRevision, batchRevision: batch?.modRevision ?? 0n },
    ...{ everyMs, revision },
  };
  const isSame =
    before !== undefined &&
    before.createRevision === seen.createRevision &&
    before.beatRevision === seen.beatRevision &&
    before.batchRevision === seen.batchRevision;
  return ok({ ...seen, sinceMs: isSame ? before.sinceMs : client.world.clock.monotonicMs() });
}

/** Removes the election key of a process that was seen, unless it has beaten or written since, also if a beat is on its way to etcd before this. */
export async function removeSilent(client: EtcdClient, keys: EtcdKeys, sight: StandbySight): Promise<void> {
  const compare = [
    createdAt(keys.active, sight.createRevision),
    modifiedAt(keys.beat(sight.attempt), sight.beatRevision),
    modifiedAt(keys.batch, sight.batchRevision),
  ];
  await client.once(({ kv }, options) => kv.txn({ compare, success: [remove(keys.active)], failure: [] }, options));
}

/**
 * Returns the moment after which the predecessor judged no renewal that it answered, by the monotonic clock; undefined if that is not known. Asked
 * after the election.
 */
export async function lastJudgedMs(
  session: BeatingSession,
  sight: StandbySight,
  othersElected: boolean,
  rules: Rules,
): Promise<number | undefined> {
  const { client, createRevision, keys } = session;
  const request = { compare: [], success: [read(keys.active), read(keys.beat(sight.attempt)), read(keys.batch)], failure: [] };
  const answer = await client.once(({ kv }, options) => kv.txn(request, options));
  if (!answer.ok) return undefined;
  const [active, beat, batch] = answer.value.responses.map(foundIn);
  if (active?.createRevision !== createRevision || beat === undefined) return undefined;
  const stands = beat.modRevision === sight.beatRevision && (batch?.modRevision ?? 0n) === sight.batchRevision && !othersElected;
  return stands || !rules.on("sightsStand") ? sight.sinceMs + sight.everyMs * clockFactor : undefined;
}

/** Removes the beats of earlier elections, as many as one transaction takes. What stays is removed by a later election. */
export async function removeOldBeats(session: BeatingSession): Promise<void> {
  const { client, createRevision, keys } = session;
  const found = await client.once(({ kv }, options) => kv.range({ key: keys.beats, rangeEnd: keys.beatsEnd, limit: 100n }, options));
  if (!found.ok) return;
  const own = fromUtf8(keys.beat(session.attempt));
  const old = found.value.kvs.filter(({ key }) => fromUtf8(key) !== own);
  if (old.length === 0) return;
  const request = { compare: [createdAt(keys.active, createRevision)], success: old.map(({ key }) => remove(key)), failure: [] };
  await client.once(({ kv }, options) => kv.txn(request, options));
}
