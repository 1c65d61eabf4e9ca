/** Accounts of init files. A front-end may make none: whoever operates the stamp does, while front-ends wait for them. */
import { fromBase64 } from "@stamp/azure-rest";
import type { FailureCode, Outcome } from "@stamp/base";
import { type Init, InitError } from "./load-init.ts";

/** Calls to the partition manager. */
export interface AccountMaker {
  get(account: string): Promise<Outcome<{ readonly keys: readonly string[] }>>;
  create(asked: { readonly account: string; readonly keys: string[] }): Promise<Outcome<unknown>>;
  createHierarchical(asked: { readonly account: string; readonly keys: string[] }): Promise<Outcome<unknown>>;
}

/**
 * Makes the accounts that are not there, with their keys or two random ones. Throws InitError if the stamp refuses one for good, another error
 * if it can't be asked now. `differs` is told of an account that is there with other keys.
 */
export async function makeAccounts(maker: AccountMaker, all: readonly Init[], differs: (what: string) => void): Promise<void> {
  for (const init of all) {
    for (const { name, keys, hierarchicalNamespace } of init.accounts) {
      const there = await maker.get(name);
      if (there.ok && keys?.some((key) => !there.value.keys.some((each) => isSame(each, key))) === true)
        differs(`account ${name} has other keys than ${init.name} says; they stay (stamp account rotate-key ${name})`);
      if (there.ok) continue;
      const asked = { account: name, keys: keys ?? [] };
      const isAbsent = there.failure.code === "notFound";
      const made = !isAbsent ? there : await (hierarchicalNamespace ? maker.createHierarchical(asked) : maker.create(asked));
      // The partition manager may make the accounts of its configuration in this moment.
      if (made.ok || made.failure.code === "alreadyExists") continue;
      const why = `${init.name}: account ${name} can't be made: ${made.failure.message}`;
      throw final.has(made.failure.code) ? new InitError(why) : new Error(why);
    }
  }
}

const final: ReadonlySet<FailureCode> = new Set([
  "invalidArgument",
  "alreadyExists",
  "failedPrecondition",
  "permissionDenied",
  "unauthenticated",
]);

const isSame = (one: string, other: string): boolean => String(fromBase64(one)) === String(fromBase64(other));
