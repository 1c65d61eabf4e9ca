/** Row with the handles of one file, beside its node (docs/formats/tree.md). */
import { FailureError, refused } from "@stamp/base";
import { intact } from "../plan.ts";
import { appendComponents, decodeKey, encodeKey, type KeyComponent } from "../rows/key.ts";
import { decodeRow, encodeRow, type Property } from "../rows/row.ts";
import { type FileHandle, type FileLock, handlesMax, locksMax, type OpenFile } from "./handle-rules.ts";

export const handlesRow = 11;

/** `partition`: with which all keys of the file's blob begin. */
export const handlesKey = (partition: Uint8Array): Uint8Array => appendComponents(partition, [[handlesRow]]);

const handleSchema: { readonly handles: Property<"binary"> } = { handles: { id: 220, type: "binary", since: 6 } };

const handleElements = 8;
const lockElements = 3;

/** Encodes an open file: one component for the file, one for each handle, each followed by its locks. */
export function encodeOpenFile({ pending, handles, directoryId, entryName }: OpenFile): Uint8Array {
  const components: KeyComponent[] = [[pending ? 1 : 0, directoryId, entryName, 0]];
  for (const { id, session, sessionEpoch, access, share, deleteOnClose, client, openedMs, locks } of handles) {
    components.push([id, session, sessionEpoch, access, share, deleteOnClose ? 1 : 0, client, openedMs]);
    for (const { startBytes, endBytes, exclusive } of locks) components.push([startBytes, endBytes, exclusive ? 1 : 0]);
  }
  // A row outlives the buffer of its encoding.
  return encodeRow(handleSchema, { handles: encodeKey(components) }).slice();
}

const damaged = (): FailureError => new FailureError(refused("dataLoss", "damaged", "row of handles: not of its form").failure);

/** Throws FailureError `damaged` for what encodeOpenFile never makes. */
export function decodeOpenFile(bytes: Uint8Array): OpenFile {
  const { handles: value } = intact(decodeRow(handleSchema, bytes));
  if (value === undefined) throw damaged();
  const [first, ...rest] = intact(decodeKey(value, 1 + handlesMax + locksMax));
  const [pending, directoryId, entryName] = first ?? [];
  if (typeof pending !== "number" || typeof directoryId !== "string" || typeof entryName !== "string") throw damaged();
  const handles: (FileHandle & { locks: FileLock[] })[] = [];
  for (const elements of rest) {
    if (elements.length === handleElements) handles.push(handleOf(elements));
    else if (elements.length === lockElements) (handles.at(-1)?.locks ?? fails()).push(lockOf(elements));
    else throw damaged();
  }
  return { pending: pending === 1, directoryId, entryName, handles };
}

function fails(): never {
  throw damaged();
}

function handleOf([id, session, sessionEpoch, access, share, deletes, client, openedMs]: KeyComponent): FileHandle & { locks: FileLock[] } {
  const texts = [id, session, client].every((text) => typeof text === "string");
  const numbers = [sessionEpoch, access, share, deletes, openedMs].every((one) => typeof one === "number");
  if (!texts || !numbers) throw damaged();
  return {
    id: id as string,
    session: session as string,
    sessionEpoch: sessionEpoch as number,
    access: access as number,
    share: share as number,
    deleteOnClose: deletes === 1,
    client: client as string,
    openedMs: openedMs as number,
    locks: [],
  };
}

function lockOf([startBytes, endBytes, exclusive]: KeyComponent): FileLock {
  if (typeof startBytes !== "number" || typeof endBytes !== "number") throw damaged();
  return { startBytes, endBytes, exclusive: exclusive === 1 };
}
