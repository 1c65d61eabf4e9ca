/**
 * Looks of the active lock service at the members of etcd, for people: which of them do not answer, and whether anybody compacts the history.
 * Nothing is decided by them.
 *
 * A member answers if it reads one key linearizably, which a member that has lost its cluster cannot.
 */
import { type Address, sleep } from "@stamp/ports";
import type { Session } from "./election.ts";
import { attemptTimeoutMs } from "./options.ts";

/** Time between two looks at all members, in milliseconds. */
export const lookEveryMs = 10_000;
/** Number of failures in a row from which on a member counts as silent: its leader may be changing. */
const failuresMin = 2;
/** History that is older than this is still there: nobody compacts it. etcd's operators keep an hour as a rule. In milliseconds. */
export const historyMaxMs = 2 * 3_600_000;
/** Time between two notes of revisions, in milliseconds. */
const noteEveryMs = 600_000;

export interface EtcdFacts {
  /** Members that do not answer, with the reason. */
  readonly silent: readonly { readonly member: Address; readonly why: string }[];
  readonly members: number;
  /** Revisions older than `historyMaxMs` that etcd still keeps; 0: somebody compacts it, or it is too early to say. */
  readonly oldRevisions: number;
}

export class MemberLooks {
  readonly #session: Session;
  readonly #failures = new Map<Address, { count: number; why: string }>();
  /** Revisions of the last `historyMaxMs`, oldest first. */
  readonly #noted: { readonly revision: bigint; readonly atMs: number }[] = [];
  #oldRevisions = 0;

  constructor(session: Session) {
    this.#session = session;
  }

  get facts(): EtcdFacts {
    const silent = [...this.#failures].filter(([, { count }]) => count >= failuresMin).map(([member, { why }]) => ({ member, why }));
    return { silent, members: this.#session.client.members.length, oldRevisions: this.#oldRevisions };
  }

  /** Looks until the session ends. */
  async run(): Promise<void> {
    const { client, ended } = this.#session;
    while (!ended.aborted) {
      await this.#look();
      await sleep(client.world.clock, lookEveryMs, ended);
    }
  }

  async #look(): Promise<void> {
    const { client, keys } = this.#session;
    const metadata = await client.metadata(attemptTimeoutMs);
    // Then no member may be asked; the client tells why.
    if (!metadata.ok) return;
    const options = { timeoutMs: attemptTimeoutMs, metadata: metadata.value };
    const answers = await Promise.all(
      client.members.map(async ({ address, kv }) => ({ address, answer: await kv.range({ key: keys.active }, options) })),
    );
    for (const { address, answer } of answers) {
      if (answer.ok) this.#failures.delete(address);
      else this.#failures.set(address, { count: (this.#failures.get(address)?.count ?? 0) + 1, why: answer.failure.message });
    }
    const revision = answers.flatMap(({ answer }) => (answer.ok ? (answer.value.header?.revision ?? []) : [])).at(0);
    if (revision !== undefined) await this.#lookBack(revision);
  }

  async #lookBack(revision: bigint): Promise<void> {
    const { client, keys } = this.#session;
    const nowMs = client.world.clock.monotonicMs();
    if (nowMs - (this.#noted.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) < noteEveryMs) return;
    this.#noted.push({ revision, atMs: nowMs });
    const old = this.#noted.findLast(({ atMs }) => nowMs - atMs >= historyMaxMs);
    if (old === undefined) return;
    while (this.#noted[0] !== old) this.#noted.shift();
    const found = await client.once(({ kv }, options) => kv.range({ key: keys.active, revision: old.revision }, options));
    if (!found.ok && found.failure.reason !== "outOfRange") return;
    this.#oldRevisions = found.ok ? Number(old.revision) : 0;
    if (found.ok)
      client.world.logger.warn("nobody compacts the history of etcd, which grows until etcd is full", {
        help: "let its operator do it (--auto-compaction-retention); if it is this stamp's alone, set etcdCompactEveryMs",
      });
  }
}
