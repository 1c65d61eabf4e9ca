/**
 * The handoff of rows to child ranges: from one partition, whose log goes on as theirs, to several; or from two
 * neighbours to one.
 */
import { type Outcome, ok, type Rules } from "@stamp/base";
import { joinedState, type KeyBounds, type MemoryTable, type PartitionState } from "@stamp/lsm";
import { type SettledShare, settledOfBoth } from "../blob-data/data-pins.ts";

/** The record that the children are loaded from. */
export interface HandoffRecord {
  /** State that the children find in the metadata stream of the first parent. */
  readonly state: PartitionState;
  /** The extent of that stream that this is recorded in. What lies before it is not needed by the children. */
  readonly recordExtentId: number;
}

export interface LeftPartition extends HandoffRecord {
  /** Time since which writes wait. */
  readonly heldSinceMs: number;
  /** Waiting time of writes for decisions under way, and for the rest, in milliseconds. */
  readonly drainMs: number;
  readonly writeMs: number;
  /** Log of a partition whose log was cut: the logs of the children begin with it. */
  readonly log?: LeftLog;
  /** Called when the children have the streams (true), or when they have not or nobody can say (false). */
  readonly became: (happened: boolean) => void;
}

/** Commits in the cut log that are in no checkpoint, for all children. */
export interface LeftLog {
  /** Extent at which replay begins; 0: the first one of the log. */
  readonly fromExtentId: number;
  readonly table: MemoryTable;
  readonly lastSequence: number;
  readonly lastTicket: number;
  readonly logBytes: number;
}

/** State and memory of one leaving partition. */
export interface Share {
  readonly state: PartitionState;
  readonly own: KeyBounds;
  /** Extents of the blob data stream. */
  readonly dataExtents: readonly number[];
}

/** Writes the last record of a partition. */
type WriteRecord = (share: Share) => Promise<Outcome<PartitionState>>;

/** Way in which a parent of a merge leaves. */
export interface LeaveOptions {
  readonly children: readonly string[];
  /** Rows in memory up to this size go into the record; more are written to a checkpoint first. In bytes. */
  readonly restBytesMax: number;
  readonly writeRecord: WriteRecord;
}

type Leave = (how: LeaveOptions) => Promise<Outcome<LeftPartition>>;

/**
 * Rows in memory that two leaving neighbours carry together, in bytes: the first one's record has them all and is one
 * block of 4 MiB.
 */
export const restBytesMax: number = 3.5 * 1024 * 1024;

const settledOf = ({ state, dataExtents }: Share): SettledShare => ({ settled: state.settledExtents ?? [], listed: dataExtents });

/**
 * The first parent's record includes the second parent's share, as soon as that is known: both records are on their way at once. The merge
 * goes on only when both are durable.
 */
export async function leaveTogether(
  rules: Rules,
  children: readonly string[],
  leaveFirst: Leave,
  leaveSecond: Leave,
): Promise<Outcome<LeftPartition>> {
  const how = { children, restBytesMax: restBytesMax / 2 };
  const { promise: otherShare, resolve: giveShare } = Promise.withResolvers<Outcome<Share>>();
  const [first, second] = await Promise.all([
    leaveFirst({
      ...how,
      writeRecord: async (share) => {
        const other = await otherShare;
        if (!other.ok) return other;
        const settledExtents = settledOfBoth(rules, settledOf(share), settledOf(other.value));
        return ok({ ...joinedState(share.state, share.own, other.value.state, other.value.own), settledExtents });
      },
    }),
    leaveSecond({
      ...how,
      writeRecord: async (share) => {
        giveShare(ok(share));
        return ok(share.state);
      },
    }).then((left) => {
      if (!left.ok) giveShare(left);
      return left;
    }),
  ]);
  if (!first.ok || !second.ok) return first.ok ? second : first;
  return ok({
    ...first.value,
    heldSinceMs: Math.min(first.value.heldSinceMs, second.value.heldSinceMs),
    drainMs: Math.max(first.value.drainMs, second.value.drainMs),
  });
}
