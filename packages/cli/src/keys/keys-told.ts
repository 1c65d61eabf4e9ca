/** Master keys of a partition server, as it tells of them among the facts of its state. */
import { factAt, numberAt, type RoleFacts } from "../health/facts.ts";

export interface MasterKeysTold {
  /** Ids of the keys that open, the one that seals first; empty: there is no master key. */
  readonly ids: readonly string[];
  /** When the file of the current key was written, in milliseconds since 1970; undefined if the key is in no file. */
  readonly madeMs: number | undefined;
  /** Reason why the key files can't be used; empty: they can. */
  readonly problem: string;
}

/** Returns undefined for a process that is no partition server, or of a release that takes a key at its start only. */
export function masterKeysTold(facts: RoleFacts): MasterKeysTold | undefined {
  const [ids, problem] = [factAt(facts, "masterKeys"), factAt(facts, "masterKeyProblem")];
  if (!Array.isArray(ids) || typeof problem !== "string") return undefined;
  return { ids: ids.map(String), madeMs: numberAt(facts, "masterKeyMadeMs") || undefined, problem };
}
