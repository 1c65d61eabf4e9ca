/**
 * The one way to change what the stream manager knows: plan from memory, commit in the metadata store under the leader's term, apply.
 *
 * Memory is exactly what is committed. A plan that touches a key whose write is in flight waits for that write and is made again, so
 * everything is checked against what holds at the moment of the commit; the keys' versions are conditions in the store as well. When the
 * outcome of a write is unknown, or somebody else wrote, memory may be wrong: the term ends and a new one loads everything again.
 */
import type { Failure, Outcome, SmTerm } from "@stamp/base";
import { ok, refused, unknownOutcome } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { jittered, sleep } from "@stamp/ports";
import type { StreamState, TransactionPlan } from "@stamp/stream";
import { changedKey, keysOf } from "@stamp/stream";

export const leaseName = "stream-manager";

const loudEveryMs = 10_000;

export interface LedgerOptions {
  readonly term: SmTerm;
  readonly timeoutMs: number;
  readonly ended: AbortSignal;
  readonly end: (why: string) => void;
}

export class Ledger {
  readonly #world: World;
  readonly #metadata: MetadataClient;
  readonly #state: StreamState;
  readonly #options: LedgerOptions;
  readonly #writing = new Map<string, Promise<void>>();
  /** Reason why the metadata store took nothing lately. */
  #away: Failure | undefined;
  #loudMs = Number.NEGATIVE_INFINITY;

  constructor(world: World, metadata: MetadataClient, state: StreamState, options: LedgerOptions) {
    this.#world = world;
    this.#metadata = metadata;
    this.#state = state;
    this.#options = options;
  }

  /** Returns texts, for people, about what the changes wait for. */
  waits(): string[] {
    return this.#away === undefined ? [] : [`nothing is recorded: ${this.#away.message}`];
  }

  get diskFull(): boolean {
    return this.#away?.reason === "diskFull";
  }

  /** `plan` is called again whenever what it was made from may have changed. Its refusal is the answer. */
  async commit(plan: (state: StreamState) => Outcome<TransactionPlan>): Promise<Outcome<void>> {
    let pauseMs = 20;
    for (;;) {
      if (this.#options.ended.aborted) return notLeader();
      const planned = plan(this.#state);
      if (!planned.ok) return planned;
      const keys = keysOf(planned.value);
      if (keys.length === 0) return ok();
      const busy = keys.map((key) => this.#writing.get(key)).find((write) => write !== undefined);
      if (busy !== undefined) {
        await busy;
        continue;
      }
      const committed = await this.#send(planned.value);
      if (committed !== "again") return committed;
      await sleep(this.#world.clock, jittered(this.#world.random, pauseMs), this.#options.ended);
      pauseMs = Math.min(pauseMs * 2, 500);
    }
  }

  async #send(plan: TransactionPlan): Promise<Outcome<void> | "again"> {
    const { digest, logger } = this.#world;
    const { term, timeoutMs, ended, end } = this.#options;
    const transaction = this.#state.transaction(plan, (bytes) => digest.crc32c(bytes));
    let written = (): void => {};
    const write = new Promise<void>((resolve) => {
      written = resolve;
    });
    const changed = plan.changes.map(changedKey);
    for (const key of changed) this.#writing.set(key, write);
    const free = (): void => {
      for (const key of changed) this.#writing.delete(key);
    };
    const sent = this.#metadata.transact({ fence: { leaseName, leaseEpoch: term }, ...transaction }, timeoutMs);
    const outcome = await sent.finally(free).catch((error: unknown) => unknownOutcome("internal", "bug", String(error)));
    if (outcome.ok && !ended.aborted) this.#state.apply(plan, outcome.value);
    written();
    if (ended.aborted) return notLeader();
    if (outcome.ok) {
      this.#away = undefined;
      return ok();
    }
    const { applied, reason, message } = outcome.failure;
    if (applied === "unknown") {
      end(`the outcome of a metadata write is unknown (${message})`);
      return notLeader();
    }
    if (reason === "staleTerm" || reason === "wrongStamp" || reason === "conflict") {
      end(`somebody else wrote the metadata (${message})`);
      return notLeader();
    }
    if (reason === "badRequest" || reason === "messageTooLarge" || reason === "damaged") {
      logger.error("the metadata store refuses a transaction", { reason, message });
      return refused("internal", reason, message);
    }
    const nowMs = this.#world.clock.monotonicMs();
    if (this.#away?.reason !== reason || nowMs - this.#loudMs >= loudEveryMs) {
      this.#loudMs = nowMs;
      logger.warn("the metadata store is away", { reason, message });
    }
    this.#away = outcome.failure;
    return "again";
  }
}

export const notLeader = (): Outcome<never> => refused("unavailable", "notLeader", "this stream manager does not lead (any more)");
