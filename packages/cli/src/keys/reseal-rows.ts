/** Seals the rows of all accounts by a master key, page by page. Waits while the range of accounts has no server. */
import { inWords } from "@stamp/ports-node";
import { Accounts } from "@stamp/wire";
import { CommandError } from "../context.ts";
import { counted } from "../health/counted.ts";
import type { Transport } from "../running.ts";
import type { RowsByKey } from "./key-rotation.ts";

type AccountsClient = ReturnType<typeof accountsAt>;
export const accountsAt = (transport: Transport, address: string) => transport.client(address, Accounts);

export interface ResealDoor {
  /** Asks which partition manager leads now. */
  readonly accounts: () => Promise<Pick<AccountsClient, "reseal">>;
  readonly pause: () => Promise<void>;
  readonly nowMs: () => number;
  /** Longest wait for a page that is not served, in milliseconds. */
  readonly patienceMs: number;
  readonly tell: (how: string) => void;
}

/** A page is 100 rows, each a commit. */
const pageTimeoutMs = 60_000;
/** The range of accounts is loading, moving or without its server, or another partition manager leads in a moment. */
const passing: ReadonlySet<string> = new Set(["unavailable", "deadlineExceeded", "failedPrecondition", "aborted"]);

/** Has all rows sealed by the key with this id, or only counts rows if it is empty. Throws CommandError. */
export async function resealRows(door: ResealDoor, keyId: string): Promise<{ readonly rows: RowsByKey; readonly resealed: number }> {
  const rows: Record<string, number> = {};
  let resealed = 0;
  let accounts = await door.accounts();
  let givenUpMs = door.nowMs() + door.patienceMs;
  for (let marker = ""; ; ) {
    const page = await accounts.reseal({ marker, keyId }, { timeoutMs: pageTimeoutMs });
    if (!page.ok) {
      const { code, reason, message } = page.failure;
      if (reason === "unknownMethod") throw new CommandError("the partition manager is of an older release: upgrade it first");
      if (!passing.has(code) || door.nowMs() >= givenUpMs) throw new CommandError(inWords(message));
      door.tell(`waiting until the rows of accounts are served: ${inWords(message)}`);
      await door.pause();
      // Sealing a page a second time changes nothing.
      accounts = await door.accounts();
      continue;
    }
    givenUpMs = door.nowMs() + door.patienceMs;
    for (const each of page.value.rows) rows[each.keyId] = (rows[each.keyId] ?? 0) + each.accounts;
    resealed += page.value.resealed;
    marker = page.value.nextMarker;
    if (marker === "") return { rows, resealed };
    const seen = Object.values(rows).reduce((sum, count) => sum + count, 0);
    door.tell(`sealing rows of accounts by the new master key: ${counted(seen, "row")} looked at, ${resealed} sealed anew`);
  }
}
