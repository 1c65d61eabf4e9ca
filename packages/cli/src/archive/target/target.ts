/** Where an import goes. */
import type { AccountDoors } from "../doors.ts";
import type { ItemCounts } from "../items.ts";

export interface ImportTarget {
  readonly doors: AccountDoors;
  readonly counts: ItemCounts;
  /** True: the account may have something, which stays where the source has nothing of the same name. */
  readonly merge: boolean;
  /** True: an earlier run may have put something of what comes. */
  readonly again: boolean;
  /** Returns true if this import makes the container, table or queue, or an earlier run of it had begun to: then the rest of it is the import's, too. */
  readonly makes: (what: string, isThere: () => Promise<boolean>) => Promise<boolean>;
  /** Told for what the account can't take. */
  readonly leftOut: (what: string, why: string, chosen?: boolean) => void;
}
