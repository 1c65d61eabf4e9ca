/**
 * The KeyValue port over the replicated log, for the leader of one term. Each batch is one entry.
 *
 * Invariants:
 *   - A batch is answered when a majority has it on disk and it is applied here.
 *   - `confirm` resolves only if a quorum answered, after the call, that no later leader had been elected (rule answersConfirmed).
 *   - Nobody else proposes in the term, so the rows that are read are the ones that the last batch left.
 */
import type { Rules } from "@stamp/base";
import type { KeyRange, KeyValue, KeyValueOperation } from "@stamp/ports";
import type { Leading } from "./leading.ts";
import type { Member } from "./member.ts";
import { encodeOperations } from "./records.ts";

export class ReplicatedKeyValue implements KeyValue {
  /** An entry goes to a member in one message. */
  readonly batchMax = { operations: 4_096, bytes: 4 << 20 } as const;
  readonly #member: Member;
  readonly #leading: Leading;
  readonly #rules: Rules;

  constructor(member: Member, leading: Leading, rules: Rules) {
    this.#member = member;
    this.#leading = leading;
    this.#rules = rules;
  }

  get(key: Uint8Array): Promise<Uint8Array | undefined> {
    return this.#member.rows.get(key);
  }

  range(range: KeyRange): AsyncIterable<readonly [Uint8Array, Uint8Array]> {
    return this.#member.rows.range(range);
  }

  async batch(operations: readonly KeyValueOperation[]): Promise<void> {
    if (operations.length > 0) await this.#member.propose(this.#leading, encodeOperations(operations));
  }

  async confirm(): Promise<void> {
    if (this.#rules.on("answersConfirmed")) await this.#member.confirm(this.#leading);
  }

  async close(): Promise<void> {
    this.#leading.end("its store was closed");
  }
}
