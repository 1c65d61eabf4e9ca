/**
 * Puts a snapshot in the place of a metadata store that was lost. What was granted or minted after the snapshot is not known, so every
 * number that must never be given twice is raised far beyond it: lease epochs (SM and PM terms among them), owner epochs, extent ids, the
 * number of the last transaction. Every lease has ended.
 */
import { type Checksum, FailureError, fromUtf8, type Outcome, ok, refused, utf8 } from "@stamp/base";
import { decodeLease, encodeLease } from "@stamp/lease";
import type { OpenedSnapshot } from "@stamp/metadata-store";
import { type Identity, type KeyValueOperation, openComplete, openIdentity, type World } from "@stamp/ports";
import { decodeStored, encodeStored, idsKey } from "@stamp/stream";
import {
  decodeKeyState,
  decodeStamp,
  decodeVersion,
  encodeKeyState,
  encodeStamp,
  encodeVersion,
  lockServiceFormats,
  metadataStoreName,
} from "./store.ts";

/** More than is given between two snapshots, which are seconds apart. */
export const raisedBy = 1_000_000;
/** More transactions than a stamp has in years: a store that was restored from however old a copy is above all that anybody saw before. */
export const versionRaisedBy: number = 2 ** 36;
/** Of the partition manager: a decimal number. */
const ownerEpochKey = "partition-manager/owner-epoch";
const batchSize = 1_000;

/**
 * Does `work` while no lock service can run on this folder, wherever: the store of its identity, which a running one has open, is held. Its
 * lock is the kernel's, so a process in another container with the same volume is kept out too. Refused with `conflict` when one runs.
 */
export async function whileStopped<T>(world: World, work: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  let identity: Identity;
  try {
    // What can't be read is held by nobody, and is begun anew: nothing but starts is counted in it.
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

/** Into an empty store; refused with `conflict` when there is one. Durable when it resolves. Gives the number of keys. */
export async function restoreMetadata(world: World, snapshot: OpenedSnapshot): Promise<Outcome<number>> {
  const checksum: Checksum = (bytes) => world.digest.crc32c(bytes);
  const opened = await openComplete(world, metadataStoreName, { discardMark: true });
  if (!opened.ok)
    return refused("failedPrecondition", "conflict", `there is a metadata store (${opened.failure.message}): move its folder away first`);
  const store = opened.value;
  try {
    for await (const _ of store.range({ limit: 1 })) {
      return refused("failedPrecondition", "conflict", "there is a metadata store with content: move its folder away first");
    }
    // All of it can be read: nothing is written of a snapshot that is damaged somewhere.
    for await (const [key, value] of snapshot.entries()) raised(key, value, checksum);
    let stamp: KeyValueOperation | undefined;
    let operations: KeyValueOperation[] = [];
    let count = 0;
    for await (const [key, value] of snapshot.entries()) {
      const operation: KeyValueOperation = { kind: "put", key, value: raised(key, value, checksum) };
      count += 1;
      if (fromUtf8(key) === "stamp") stamp = operation;
      else operations.push(operation);
      if (operations.length < batchSize) continue;
      await store.batch(operations, { sync: true });
      operations = [];
    }
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

function raised(key: Uint8Array, value: Uint8Array, checksum: Checksum): Uint8Array {
  const name = fromUtf8(key);
  if (name === "stamp") return encodeStamp(intact(decodeStamp(value, checksum)), checksum);
  if (name === "version") return encodeVersion(numberOf(value, checksum) + versionRaisedBy, checksum);
  if (name.startsWith("l/")) {
    const lease = intact(decodeLease(value, checksum));
    return encodeLease({ ...lease, epoch: (lease.epoch + raisedBy) as typeof lease.epoch, ended: true, refused: false }, checksum);
  }
  if (name === `k/${idsKey}`) return raisedIds(value, checksum);
  if (name === `k/${ownerEpochKey}`) {
    const state = intact(decodeKeyState(value, checksum));
    const last = Number(fromUtf8(state.value ?? new Uint8Array(0)));
    if (!Number.isSafeInteger(last)) throw new FailureError(refused("dataLoss", "damaged", `${ownerEpochKey} is not a number`).failure);
    return encodeKeyState(utf8(String(last + raisedBy)), state.version, checksum);
  }
  return value;
}

function raisedIds(value: Uint8Array, checksum: Checksum): Uint8Array {
  const state = intact(decodeKeyState(value, checksum));
  const stored = intact(decodeStored(idsKey, state.value ?? new Uint8Array(0), checksum));
  if (stored.kind !== "ids") throw new FailureError(refused("dataLoss", "damaged", `${idsKey} holds ${stored.kind}`).failure);
  return encodeKeyState(encodeStored({ ...stored, next: stored.next + raisedBy }, checksum), state.version, checksum);
}

function numberOf(value: Uint8Array, checksum: Checksum): number {
  return intact(decodeVersion(value, checksum));
}

/** Nothing is written of a snapshot in which something can't be read. */
function intact<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new FailureError(outcome.failure);
  return outcome.value;
}
