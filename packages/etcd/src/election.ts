/**
 * Election of the active process through etcd (decision 0520): whoever creates the key `active` is it. The key is bound to an etcd lease, so
 * it goes away when its process does not keep the lease alive. Its create revision is the fencing token of the election.
 *
 * Invariants:
 *   - A process is elected only with a create revision that etcd told, for a key with the value of that very attempt.
 *   - The key of an attempt that was given up never stays: its lease is revoked, or runs out.
 *   - A session ends when etcd says that the key or its lease is gone, never because the local clock says so: while etcd does not answer,
 *     nobody else is elected.
 *   - A standby removes the key of an active process only if etcd answered the standby all the time and saw no beat for `silentMs`, in a
 *     transaction that a beat on its way undoes.
 *   - A standby removes an election key that no etcd lease bounds: no candidate has put it, and it would stay for ever.
 */
import { equalBytes, FailureError, fromUtf8, type Outcome, ok, type Rules, refused } from "@stamp/base";
import { type Address, Leadership, sleep } from "@stamp/ports";
import { etcd } from "@stamp/wire";
import { Beats, encodeBeat, lastJudgedMs, lookAtBeats, removeOldBeats, removeSilent, type StandbySight, type WatchedKey } from "./beats.ts";
import type { EtcdClient } from "./etcd-client.ts";
import { createdAt, modifiedAt, put, read, remove } from "./operations.ts";
import { attemptTimeoutMs, type Candidate, decodeCandidate, type EtcdKeys, encodeCandidate } from "./options.ts";

export interface ElectionOptions {
  readonly keys: EtcdKeys;
  readonly name: string;
  /** Returns where clients call this process. */
  readonly address: () => Address;
  /** Time to live of the etcd lease, in seconds. */
  readonly ttlSeconds: number;
  readonly watched?: WatchedKey;
}

const revokeTimeoutMs = 500;
const renewalsPerTerm = 3;
/** Time between two looks of a standby at the active process, in milliseconds. */
const lookEveryMs = 200;
/** With a longer time between two answered looks, etcd may have answered nobody meanwhile, so silence counts from the second one. */
const lookGapMaxMs = 3 * lookEveryMs;
/** Time without a beat after which a standby takes over, in milliseconds. */
export const silentMs = 2_000;
/** Longest pause between beats of an active process that answers nobody, in milliseconds. */
const idleBeatMs = 500;

export class Election {
  readonly #client: EtcdClient;
  readonly #options: ElectionOptions;
  readonly #rules: Rules;
  #holder: Candidate | undefined;
  #sight: StandbySight | undefined;

  constructor(client: EtcdClient, options: ElectionOptions, rules: Rules) {
    this.#client = client;
    this.#options = options;
    this.#rules = rules;
  }

  /** The candidate that was last seen to be elected; undefined if none. */
  get holder(): Candidate | undefined {
    return this.#holder;
  }

  /** Resolves when this process is elected; throws FailureError `cancelled` when the signal is aborted. */
  async campaign(signal: AbortSignal): Promise<Session> {
    // A sight of an earlier campaign is as old as the turn in between.
    this.#sight = undefined;
    for (let tries = 0; ; tries++) {
      if (signal.aborted) throw new FailureError(refused("cancelled", "cancelled", "the election was given up").failure);
      const found = await this.#client.once(({ kv }, options) => kv.range({ key: this.#options.keys.active }, options));
      if (!found.ok) {
        await this.#client.pause(tries, signal);
        continue;
      }
      tries = 0;
      const { header, kvs } = found.value;
      const [held] = kvs;
      this.#holder = held && decodeCandidate(held.value);
      if (held !== undefined && held.lease === 0n) {
        await this.#removeUnbound(held.modRevision, this.#holder);
        await this.#client.pause(tries, signal);
        continue;
      }
      if (held !== undefined) {
        await this.#untilGone((header?.revision ?? 0n) + 1n, this.#holder?.attempt ?? "", signal);
        continue;
      }
      const session = await this.#stand();
      if (session.ok) {
        await this.#findLastJudged(session.value);
        void removeOldBeats(session.value);
        return session.value;
      }
      await this.#client.pause(tries, signal);
    }
  }

  /** Removes a key that a person, or a copy of another etcd (`etcdctl make-mirror`), has put. A process that is elected by it is deposed. */
  async #removeUnbound(modRevision: bigint, holder: Candidate | undefined): Promise<void> {
    const { active } = this.#options.keys;
    this.#client.world.logger.warn("the election key in etcd has no lease, so it belongs to no process that runs: it is removed", {
      key: fromUtf8(active),
      holder: holder?.name,
    });
    const request = { compare: [modifiedAt(active, modRevision)], success: [remove(active)], failure: [] };
    await this.#client.once(({ kv }, options) => kv.txn(request, options));
  }

  async #stand(): Promise<Outcome<Session>> {
    const { keys, name, ttlSeconds } = this.#options;
    const lease = await this.#client.once(({ lease }, options) => lease.leaseGrant({ ttl: BigInt(ttlSeconds) }, options));
    if (!lease.ok) return lease;
    const { random } = this.#client.world;
    const attempt = Array.from(random.bytes(12), (byte) => byte.toString(16).padStart(2, "0")).join("");
    const candidate: Candidate = { name, address: this.#options.address(), attempt };
    const value = encodeCandidate(candidate);
    const request = {
      compare: [createdAt(keys.active, 0n)],
      success: [put(keys.active, value, lease.value.id), put(keys.beat(attempt), encodeBeat(0))],
      failure: [read(keys.active)],
    };
    const answer = await this.#client.once(({ kv }, options) => kv.txn(request, options));
    const revision = answer.ok ? (answer.value.succeeded ? answer.value.header?.revision : undefined) : await this.#created(value);
    if (revision === undefined) {
      // An attempt that arrives later finds its lease gone, and writes nothing.
      await this.#client.once(({ lease: leases }, options) => leases.leaseRevoke({ id: lease.value.id }, options), revokeTimeoutMs);
      return answer.ok ? refused("failedPrecondition", "leaseHeld", "another process was elected") : answer;
    }
    this.#holder = candidate;
    return ok(new Session(this.#client, keys, { lease: lease.value.id, createRevision: revision, ttlSeconds, attempt }, this.#rules));
  }

  /** Returns the create revision of the key, if this attempt made it and its answer was lost. */
  async #created(value: Uint8Array): Promise<bigint | undefined> {
    const found = await this.#client.once(({ kv }, options) => kv.range({ key: this.#options.keys.active }, options));
    const kept = found.ok ? found.value.kvs[0] : undefined;
    return kept !== undefined && equalBytes(kept.value, value) ? kept.createRevision : undefined;
  }

  async #findLastJudged(session: Session): Promise<void> {
    const sight = this.#sight;
    if (sight === undefined) return;
    const others = await this.#othersElected(sight, session.createRevision);
    session.lastJudgedMs = await lastJudgedMs(session, sight, others, this.#rules);
  }

  /** True unless etcd tells that nobody was elected between the one that was seen and this process. A release without beats may have been. */
  async #othersElected(sight: StandbySight, createRevision: bigint): Promise<boolean> {
    const done = new AbortController();
    try {
      for await (const { canceled, events } of this.#watch(sight.revision + 1n, attemptTimeoutMs, done.signal)) {
        if (canceled) return true;
        const [elected] = events.filter(({ type }) => type === etcd.Event_EventType.PUT);
        if (elected !== undefined) return elected.kv?.modRevision !== createRevision;
      }
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
    } finally {
      done.abort();
    }
    return true;
  }

  /** Looks at the active process until the signal is aborted, and removes its election key when it is silent. */
  async #lookAt(attempt: string, signal: AbortSignal): Promise<void> {
    const { clock } = this.#client.world;
    let silentSinceMs = clock.monotonicMs();
    let lookedMs = silentSinceMs;
    while (!signal.aborted) {
      const before = this.#sight;
      const seen = await lookAtBeats(this.#client, this.#options.keys, attempt, before, this.#options.watched);
      if (seen.ok) {
        const nowMs = clock.monotonicMs();
        this.#sight = seen.value;
        const isSame = seen.value !== undefined && seen.value.sinceMs === before?.sinceMs;
        if (!isSame || nowMs - lookedMs > lookGapMaxMs) silentSinceMs = nowMs;
        lookedMs = nowMs;
        if (seen.value !== undefined && nowMs - silentSinceMs >= silentMs && this.#rules.on("answersBeat")) {
          await removeSilent(this.#client, this.#options.keys, seen.value);
          silentSinceMs = clock.monotonicMs();
        }
      }
      await sleep(clock, lookEveryMs, signal);
    }
  }

  /** Waits until the key may be gone. A watch that ends for whatever reason, compaction among them, is followed by a new look. */
  async #untilGone(revision: bigint, attempt: string, signal: AbortSignal): Promise<void> {
    const done = new AbortController();
    const stop = (): void => done.abort();
    signal.addEventListener("abort", stop, { once: true });
    const looking = this.#lookAt(attempt, done.signal);
    try {
      for await (const { canceled, events } of this.#watch(revision, this.#options.ttlSeconds * 1_000, done.signal)) {
        if (canceled || events.some(({ type }) => type === etcd.Event_EventType.DELETE)) return;
      }
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      if (error.failure.code !== "deadlineExceeded" && !signal.aborted) {
        this.#client.nextMember();
        await this.#client.pause(2, signal);
      }
    } finally {
      done.abort();
      signal.removeEventListener("abort", stop);
      await looking;
    }
  }

  /** Changes of the election key from this revision on. Throws FailureError at the end of the time. */
  async *#watch(revision: bigint, timeoutMs: number, signal: AbortSignal) {
    // The signal of a member that has no leader; etcd ends such a watch.
    const metadata = await this.#client.metadata(attemptTimeoutMs);
    if (!metadata.ok) return;
    const options = { timeoutMs, metadata: { ...metadata.value, hasleader: "true" }, signal };
    const create = { case: "createRequest" as const, value: { key: this.#options.keys.active, startRevision: revision } };
    yield* this.#client.member.watch.watch(once({ requestUnion: create }, signal), options);
  }
}

/** Rights of an elected process until it is deposed. */
export class Session extends Leadership {
  readonly createRevision: bigint;
  readonly keys: EtcdKeys;
  readonly client: EtcdClient;
  /** Random name of the attempt that was elected. */
  readonly attempt: string;
  /**
   * Moment after which no predecessor judged a renewal that it answered, by the monotonic clock; undefined if that is not known: it may have done so
   * until this process was elected.
   */
  lastJudgedMs: number | undefined;
  readonly beats: Beats;
  readonly #lease: bigint;
  readonly #ttlSeconds: number;

  constructor(
    client: EtcdClient,
    keys: EtcdKeys,
    elected: { readonly lease: bigint; readonly createRevision: bigint; readonly ttlSeconds: number; readonly attempt: string },
    rules: Rules,
  ) {
    super();
    this.client = client;
    this.keys = keys;
    this.createRevision = elected.createRevision;
    this.attempt = elected.attempt;
    this.#lease = elected.lease;
    this.#ttlSeconds = elected.ttlSeconds;
    this.beats = new Beats(this, rules);
    void this.#keepAlive();
    void this.#beatWhileIdle();
  }

  /** Gives the election up, so that another process need not wait. */
  async resign(): Promise<void> {
    this.end("it was given up");
    await this.client.once(({ lease }, options) => lease.leaseRevoke({ id: this.#lease }, options), revokeTimeoutMs);
  }

  async #beatWhileIdle(): Promise<void> {
    while (!this.ended.aborted) {
      await sleep(this.client.world.clock, idleBeatMs, this.ended);
      if (!this.ended.aborted) await this.beats.beatIfOlder(idleBeatMs).catch(() => {});
    }
  }

  async #keepAlive(): Promise<void> {
    const everyMs = (this.#ttlSeconds * 1_000) / renewalsPerTerm;
    while (!this.ended.aborted) {
      await sleep(this.client.world.clock, everyMs, this.ended);
      for (let tries = 0; !this.ended.aborted; tries++) {
        const ttl = await this.#renew();
        if (ttl === 0n) this.end("its etcd lease has ended");
        if (ttl !== undefined) break;
        await this.client.pause(tries, this.ended);
      }
    }
  }

  /** Returns the time to live that etcd gives the lease now, in seconds; 0: it has ended; undefined: no answer. */
  async #renew(): Promise<bigint | undefined> {
    const timeoutMs = Math.max(attemptTimeoutMs / 2, 200);
    const answer = await this.client.once(async ({ lease }, options) => {
      const done = new AbortController();
      try {
        for await (const { ttl } of lease.leaseKeepAlive(once({ id: this.#lease }, done.signal), { ...options, signal: done.signal }))
          return ok(ttl);
        return refused("unavailable", "connectionLost", "etcd ended the stream");
      } catch (error) {
        if (error instanceof FailureError) return { ok: false, failure: error.failure };
        throw error;
      } finally {
        done.abort();
      }
    }, timeoutMs);
    if (answer.ok) return answer.value;
    return answer.failure.reason === "leaseEnded" ? 0n : undefined;
  }
}

/** Returns a stream of one request that stays open until the signal is aborted. */
async function* once<T>(request: T, signal: AbortSignal): AsyncIterable<T> {
  yield request;
  if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
