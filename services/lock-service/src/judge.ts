/**
 * Decides one metadata transaction against the state that every earlier one left. Pure: what it may look at is given to it.
 *
 * The fence compares the recorded epoch of the lease only. A lease that ended but has no successor still lets its old holder finish:
 * nobody else can have acted under a higher epoch yet (model/append.pml RULE_STORE_TERM).
 */
import type { Outcome, Rules } from "@stamp/base";
import { ok, refused } from "@stamp/base";

export const transactionKeysMax = 256;
export const transactionBytesMax = 1_048_576;
export const keyLengthMax = 1_024;

export interface TransactionInput {
  readonly fence: { readonly leaseName: string; readonly leaseEpoch: number };
  readonly conditions: readonly { readonly key: string; readonly version: number }[];
  readonly writes: readonly { readonly key: string; readonly value?: Uint8Array }[];
}

/** Checks a transaction apart from the state: too large or malformed ones are refused before they wait. */
export function checkTransaction(transaction: TransactionInput, writesMax: number = transactionKeysMax): Outcome<void> {
  const { conditions, writes } = transaction;
  if (writes.length > writesMax) return refused("invalidArgument", "badRequest", `a transaction writes at most ${writesMax} keys`);
  if (conditions.length + writes.length > transactionKeysMax) {
    return refused("invalidArgument", "badRequest", `a transaction names at most ${transactionKeysMax} keys`);
  }
  const seen = new Set<string>();
  let bytes = 0;
  for (const { key, value } of writes) {
    if (seen.has(key)) return refused("invalidArgument", "badRequest", `key ${key} is written twice`);
    seen.add(key);
    bytes += key.length + (value?.length ?? 0);
  }
  for (const { key } of [...conditions, ...writes]) {
    if (key.length === 0 || key.length > keyLengthMax) {
      return refused("invalidArgument", "badRequest", `a key has 1 to ${keyLengthMax} characters`);
    }
  }
  if (bytes > transactionBytesMax)
    return refused("invalidArgument", "messageTooLarge", `a transaction has at most ${transactionBytesMax} bytes`);
  return ok();
}

export interface TransactionView {
  leaseEpoch(name: string): number;
  /** Returns the version of a key; 0 when it is absent. */
  keyVersion(key: string): number;
}

export function judgeTransaction(transaction: TransactionInput, view: TransactionView, rules: Rules): Outcome<void> {
  const { leaseName, leaseEpoch } = transaction.fence;
  const current = view.leaseEpoch(leaseName);
  if (rules.on("storeFence") && (current === 0 || current !== leaseEpoch)) {
    return refused("failedPrecondition", "staleTerm", `lease ${leaseName} is at epoch ${current}, the writer acts under ${leaseEpoch}`, {
      currentTerm: String(current),
    });
  }
  if (!rules.on("storeCompareAndSet")) return ok();
  for (const { key, version } of transaction.conditions) {
    const actual = view.keyVersion(key);
    if (actual !== version) {
      return refused("aborted", "conflict", `key ${key} has version ${actual}, not ${version}`, { key, version: String(actual) });
    }
  }
  return ok();
}
