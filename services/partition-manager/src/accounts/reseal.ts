/**
 * Seals rows of accounts anew, after a new master key is in use (docs/guides/keys-at-rest.md). A change of nothing writes the row, and whatever is
 * written is sealed by the key that the partition server seals with. Rows of accounts that are copies here, or have gone to another stamp, are
 * included: they hold secrets, too.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import type { CallContext } from "@stamp/ports";
import type { Account, ResealRequest } from "@stamp/wire";
import type { AccountRows } from "./account-rows.ts";

const pageMax = 100;
/** Rows that are written at the same time. */
const atOnce = 8;

export interface ResealResult {
  readonly nextMarker: string;
  readonly rows: { readonly keyId: string; readonly accounts: number }[];
  readonly resealed: number;
}

export async function resealPage(
  rows: AccountRows,
  { marker, keyId }: Pick<ResealRequest, "marker" | "keyId">,
  context: CallContext,
): Promise<Outcome<ResealResult>> {
  const page = await rows.page(marker, pageMax, context);
  if (!page.ok) return page;
  const sealedBy = page.value.accounts.map((account) => account.sealedBy);
  const stale = keyId === "" ? [] : [...sealedBy.keys()].filter((at) => sealedBy[at] !== keyId);
  for (let from = 0; from < stale.length; from += atOnce) {
    const group = stale.slice(from, from + atOnce);
    const written = await Promise.all(group.map((at) => resealRow(rows, page.value.accounts[at] as Account, keyId, context)));
    for (const [i, outcome] of written.entries()) {
      if (!outcome.ok) return outcome;
      sealedBy[group[i] as number] = outcome.value;
    }
  }
  const counts = Map.groupBy(sealedBy, (id) => id);
  return ok({
    nextMarker: page.value.nextMarker,
    rows: [...counts].map(([id, accounts]) => ({ keyId: id, accounts: accounts.length })),
    resealed: stale.filter((at) => sealedBy[at] === keyId).length,
  });
}

/** Returns the id of the key that seals the row now; empty if the feature level of the stamp keeps it from being sealed. */
async function resealRow(rows: AccountRows, { name }: Account, keyId: string, context: CallContext): Promise<Outcome<string>> {
  const options = { deadlineMs: context.deadlineMs, signal: context.signal };
  const changed = await rows.execute({ case: "changeAccount", value: { account: name } }, options);
  if (!changed.ok) return changed;
  if (changed.value.case !== "account") return refused("internal", "bug", `an account was answered by ${changed.value.case}`);
  const { sealedBy } = changed.value.value;
  if (sealedBy === keyId || sealedBy === "") return ok(sealedBy);
  const message = `the row of account ${name} was sealed by master key ${sealedBy}, not by ${keyId}: not every partition server seals with that one yet`;
  return refused("failedPrecondition", "conflict", message);
}
