/**
 * Creation numbers of extents (docs/decisions/0580). The stream manager gives a random one with each extent, and names it in every command. A number
 * of an extent may be given twice, after an older metadata store was put back; its creation number is not.
 *
 * Invariant: a command for one creation fences, seals, replaces, copies and deletes no replica of another (rule `commandsNameCreations`).
 */
import type { ExtentId } from "@stamp/base";
import { type Creation, isUnreadable, type Replica } from "@stamp/extent";
import { fromWire } from "@stamp/wire";
import type { LocalExtent } from "./disk/local-extent.ts";
import type { Node } from "./node.ts";

/** Length of a name of a stream that a replica keeps, in characters; a longer one is not kept. */
const streamKeptMax = 512;

interface Named {
  /** 0: the extent has no creation number. A replica that has one is another extent's then, too: the stamp's level has never fallen. Absent: any. */
  readonly creation?: bigint | undefined;
  /** True if the record names the replica on this disk. */
  readonly holder?: boolean;
}

/** Returns what a new replica keeps of its extent's creation; undefined: the extent has no creation number. */
export function creationOf(request: {
  readonly creation: bigint;
  readonly stream: string;
  readonly predecessor?: bigint;
}): Creation | undefined {
  const number = fromWire(request.creation);
  if (number === 0) return undefined;
  const stream = request.stream.length <= streamKeptMax ? request.stream : "";
  return { number, stream, ...(request.predecessor === undefined ? {} : { predecessor: fromWire(request.predecessor) }) };
}

/**
 * True if the replica is of another creation than the command. What can't be read may be of any creation: only the record's own replica is taken for
 * the one that the command means.
 */
export function isOther(node: Node, replica: Replica, { creation, holder = false }: Named): boolean {
  if (creation === undefined || !node.world.rules.on("commandsNameCreations")) return false;
  const named = fromWire(creation);
  if (isUnreadable(replica.meta)) return named !== 0 && !holder;
  return (replica.creation?.number ?? 0) !== named;
}

/** Returns the replica that a command means; undefined if none is here, or one of another creation. */
export function findOf(node: Node, id: ExtentId, request: Named): LocalExtent | undefined {
  const held = node.find(id);
  return held === undefined || isOther(node, held.replica, { holder: true, ...request }) ? undefined : held;
}
