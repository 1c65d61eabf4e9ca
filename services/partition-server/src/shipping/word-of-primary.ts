/**
 * Decides whether rows of another stamp can be what the primary of an account has shipped to the copy here.
 *
 *     front-end's door: may this caller speak of the account? ──► here: can its primary have said this? ──► admission: may these rows be written?
 *
 * The door has compared the account's role. Whoever has the certificate of a front-end calls without the door, and may name what it likes.
 *
 * Invariants:
 * - All keys between which rows are written or deleted are of one account: a part of a scan deletes what it leaves out.
 * - The account's role here, as the partition manager said last, is that of a copy of the same role epoch and of the same operation. Until this server
 *   has heard so, it takes nothing. A role that it heard before a promotion names an epoch that the promotion has fenced.
 * - No commit and no lineage of a log is taken that the primary can't have made by now: it would stand above all that the primary makes later.
 */
import { compareBytes, type Failed, refused, timeNumber } from "@stamp/base";
import { type AccountRole, acceptsShipment } from "@stamp/geo";
import { accountKeys, isShippedFor } from "@stamp/objects";
import type { World } from "@stamp/ports";

/** Rows that were shipped, or a part of a scan, without the rows themselves. */
export interface ShippedWord {
  readonly account: string;
  readonly table: string;
  /** Keys between which rows are written or deleted: the first one, and the end of a part of a scan. */
  readonly low: Uint8Array;
  readonly high?: Uint8Array;
  /** Role epoch of the primary. */
  readonly epoch: number;
  /** Number of the operation that began the copy; 0: the primary's row or release does not know it. */
  readonly paired: number;
  /** True if the primary's stamp may be of a release that does not name the operation: below feature level 4 of this stamp. */
  readonly mayBeOlder: boolean;
  readonly lineage: number;
  /** Numbers of commits in the primary's log. */
  readonly sequences: readonly number[];
}

/** Time by which the clock of another stamp may be ahead, in milliseconds. */
const clockSkewMs = 86_400_000;
/**
 * Time by which a lineage may be ahead, in milliseconds. Each restore of a metadata store raises its lineage by 2^36 at least, i.e. by 18 hours of that
 * scale, so some restores in a row leave the day behind. A lineage that was made by a wrong clock stays with its ranges, too.
 */
const lineageAheadMs = 366 * 86_400_000;

const bad = (message: string) => refused("invalidArgument", "badRequest", message);

/** Returns why nothing is taken from the primary; undefined: it may be. `role`: role of the account here; undefined: not known. */
export function notOfPrimary({ clock, rules }: World, role: AccountRole | undefined, word: ShippedWord): Failed | undefined {
  const { account, table, low, high, epoch, paired, mayBeOlder } = word;
  const keys = accountKeys(account);
  if (compareBytes(low, keys.low) < 0 || compareBytes(high ?? low, keys.high) > 0)
    return bad(`rows were shipped outside of account ${account}`);
  const taken = acceptsShipment(role, epoch, rules);
  const isOtherCopy = role?.paired !== undefined && paired !== role.paired && (paired > 0 || !mayBeOlder);
  if (!taken.ok || isOtherCopy) {
    const copy = `a copy of role epoch ${epoch}, begun by operation ${paired}`;
    const older = paired > 0 ? "" : ", or change the primary's processes: a release before feature level 2 does not name the operation";
    const message = `this partition server has not heard that account ${account} has ${copy} here: try again${older}`;
    return refused("unavailable", "notReady", message);
  }
  if (!isShippedFor(role ?? {}, table)) return bad(`rows of table ${table} are not copied for account ${account}`);
  return fromTheFuture(clock.wallMs(), word);
}

/**
 * Refuses sequences and lineages far above those of the time. A log makes fewer commits in a second than that scale has numbers, and lineages are on
 * it (log-lineage.ts of @stamp/lsm).
 */
function fromTheFuture(wallMs: number, { lineage, sequences }: ShippedWord): Failed | undefined {
  const day = timeNumber(wallMs + clockSkewMs);
  const far = sequences.find((number) => number > day);
  const clocks = "compare the clocks of both stamps";
  if (far !== undefined) return bad(`no log has made commit ${far} by this stamp's clock: ${clocks}`);
  if (lineage <= timeNumber(wallMs + lineageAheadMs)) return;
  return bad(`lineage ${lineage} is over a year ahead of this stamp's clock: ${clocks}, and that of the last restore of metadata`);
}
