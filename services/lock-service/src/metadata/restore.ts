/**
 * Puts a snapshot in the place of a metadata store that was lost. What was granted or minted after the snapshot is not known, so every
 * number that must never be given twice is raised far beyond it: lease epochs (SM and PM terms among them), owner epochs, extent ids, the
 * number of the last transaction. Every lease has ended.
 *
 * A second restore may begin from the same copy, or from an older one than the first. A raise that is the same each time would give again what
 * was given between the two restores. So extent ids, lease epochs and the number of the last transaction also begin above a multiple of the seconds
 * since 2026. Owner epochs do not: beyond 2^28 the tickets of split ranges would lose their distance, and extents that an owner
 * epoch of before could write to are not in the restored store.
 *
 * What was recorded after the snapshot is taken back, and comes again with other content: sequences of commit logs among it. So the restored store
 * begins a new lineage, which ranges and copies at other stamps know (lineage-record.ts). Its number is that of the store's last transaction.
 */
import { type Checksum, FailureError, fromUtf8, type Outcome, ok, refused, secondsSince2026, timeNumber, utf8 } from "@stamp/base";
import { decodeLease, encodeLease } from "@stamp/lease";
import { encodeLineage, lineageKey, type OpenedSnapshot } from "@stamp/metadata-store";
import { type Identity, type KeyValueOperation, openComplete, openIdentity, type World } from "@stamp/ports";
import { decodeStored, encodeStored, idsKey } from "@stamp/stream";
import { refuseBesideMember } from "../consensus/member-folder.ts";
import {
  decodeKeyState,
  decodeStamp,
  decodeVersion,
  encodeKeyState,
  encodeStamp,
  encodeVersion,
  lockServiceFormats,
  metadataStoreName,
} from "../store/store.ts";

/** More than is given between two snapshots, which are seconds apart; and more than is given in a second. */
const raisedBy = 1_000_000;
/** More transactions than a stamp has in years: a store that was restored from however old a copy is above all that anybody saw before. */
const versionRaisedBy: number = 2 ** 36;
/** Maps numbers of the copy to higher ones. Both stay below 2^53 until the year 2298. */
interface Raise {
  readonly number: (given: number) => number;
  readonly version: (given: number) => number;
}

function raiseAt(wallMs: number): Raise {
  return {
    number: (given) => Math.max(given + raisedBy, secondsSince2026(wallMs) * raisedBy),
    version: (given) => Math.max(given + versionRaisedBy, timeNumber(wallMs)),
  };
}
/** Key of the partition manager's owner epoch: a decimal number. */
const ownerEpochKey = "partition-manager/owner-epoch";
const batchSize = 1_000;

/** Does `work` as `whileHeld` does. Refused with `badRequest` if the folder has a member's rows. */
export const whileStopped = <T>(world: World, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> =>
  whileHeld(world, async () => {
    const beside = await refuseBesideMember(world);
    return beside.ok ? work() : beside;
  });

/**
 * Does `work` while no lock service can run on this folder, wherever: the store of its identity, which a running one has open, is held. Its
 * lock is the kernel's, so a process in another container with the same volume is kept out too. Refused with `conflict` when one runs.
 */
export async function whileHeld<T>(world: World, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  let identity: Identity;
  try {
    // An unreadable identity is held by nobody, and is begun anew: nothing but starts is counted in it.
    identity = await openIdentity(world, { formats: lockServiceFormats, kept: 0 });
  } catch (error) {
    if (!(error instanceof FailureError) || error.failure.reason !== "conflict") throw error;
    return refused("failedPrecondition", "conflict", `its lock service runs: stop it first (${error.failure.message})`);
  }
  try {
    return await work();
  } finally {
    await identity.close();
  }
}

/**
 * File beside the store that notes a restore that was begun: its new store is whole, and what it replaces is being moved aside. Until the last step
 * removes the note, nothing in this folder is served.
 */
export const restoreNotePath = "metadata-restore";

/** Refuses with `damaged` if a restore was begun in this folder and not finished. */
export async function refuseHalfRestored({ disk }: Pick<World, "disk">): Promise<Outcome<void>> {
  if (!(await disk.exists(restoreNotePath))) return ok();
  return refused("dataLoss", "damaged", "a restore was begun and not finished: the same command goes on with it");
}

/** Restores into an empty store; refuses with `conflict` if there is one. Durable when it resolves. Returns the number of keys. */
export async function restoreMetadata(world: World, snapshot: OpenedSnapshot): Promise<Outcome<number>> {
  const checksum: Checksum = (bytes) => world.digest.crc32c(bytes);
  const raise = raiseAt(world.clock.wallMs());
  const opened = await openComplete(world, metadataStoreName, { discardMark: true });
  if (!opened.ok)
    return refused("failedPrecondition", "conflict", `there is a metadata store (${opened.failure.message}): move its folder away first`);
  const store = opened.value;
  try {
    for await (const _ of store.range({ limit: 1 })) {
      return refused("failedPrecondition", "conflict", "there is a metadata store with content: move its folder away first");
    }
    // All of it can be read: nothing is written of a snapshot that is damaged somewhere.
    for await (const [key, value] of snapshot.entries()) raised(key, value, raise, checksum);
    let stamp: KeyValueOperation | undefined;
    let operations: KeyValueOperation[] = [];
    // A copy from before the first extent and the first owner epoch has no record of how far they were given.
    const begun = new Map([
      [`k/${idsKey}`, encodeStored({ kind: "ids", next: raise.number(0) }, checksum)],
      [`k/${ownerEpochKey}`, utf8(String(raisedBy))],
    ]);
    let count = 0;
    const lineage = { number: raise.version(snapshot.version), wallMs: Math.floor(world.clock.wallMs()) };
    for await (const [key, value] of snapshot.entries()) {
      if (fromUtf8(key) === `k/${lineageKey}`) continue;
      const operation: KeyValueOperation = { kind: "put", key, value: raised(key, value, raise, checksum) };
      count += 1;
      begun.delete(fromUtf8(key));
      if (fromUtf8(key) === "stamp") stamp = operation;
      else operations.push(operation);
      if (operations.length < batchSize) continue;
      await store.batch(operations, { sync: true });
      operations = [];
    }
    begun.set(`k/${lineageKey}`, encodeLineage(lineage, checksum));
    for (const [key, value] of begun) operations.push({ kind: "put", key: utf8(key), value: encodeKeyState(value, 1, checksum) });
    // The stamp's own record comes last: a store without it is never served, so one that was cut short is none.
    if (stamp === undefined) return refused("dataLoss", "damaged", "the snapshot has no identity of a stamp");
    await store.batch([...operations, stamp], { sync: true });
    return ok(count);
  } catch (error) {
    if (error instanceof FailureError) return { ok: false, failure: error.failure };
    throw error;
  } finally {
    await store.close();
  }
}

function raised(key: Uint8Array, value: Uint8Array, raise: Raise, checksum: Checksum): Uint8Array {
  const name = fromUtf8(key);
  if (name === "stamp") return encodeStamp(intact(decodeStamp(value, checksum)), checksum);
  if (name === "version") return encodeVersion(raise.version(numberOf(value, checksum)), checksum);
  if (name.startsWith("l/")) {
    const lease = intact(decodeLease(value, checksum));
    return encodeLease({ ...lease, epoch: raise.number(lease.epoch) as typeof lease.epoch, ended: true, refused: false }, checksum);
  }
  if (name === `k/${idsKey}`) return raisedIds(value, raise, checksum);
  if (name === `k/${ownerEpochKey}`) {
    const state = intact(decodeKeyState(value, checksum));
    const last = Number(fromUtf8(state.value ?? new Uint8Array(0)));
    if (!Number.isSafeInteger(last)) throw new FailureError(refused("dataLoss", "damaged", `${ownerEpochKey} is not a number`).failure);
    return encodeKeyState(utf8(String(last + raisedBy)), state.version, checksum);
  }
  return value;
}

function raisedIds(value: Uint8Array, raise: Raise, checksum: Checksum): Uint8Array {
  const state = intact(decodeKeyState(value, checksum));
  const stored = intact(decodeStored(idsKey, state.value ?? new Uint8Array(0), checksum));
  if (stored.kind !== "ids") throw new FailureError(refused("dataLoss", "damaged", `${idsKey} holds ${stored.kind}`).failure);
  return encodeKeyState(encodeStored({ ...stored, next: raise.number(stored.next) }, checksum), state.version, checksum);
}

function numberOf(value: Uint8Array, checksum: Checksum): number {
  return intact(decodeVersion(value, checksum));
}

/** Returns the value, or throws: nothing is written of a snapshot with an unreadable part. */
function intact<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new FailureError(outcome.failure);
  return outcome.value;
}
