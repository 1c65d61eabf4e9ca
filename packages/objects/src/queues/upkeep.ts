/**
 * Upkeep that operations on messages do beside their own work, a bounded piece each: removing expired messages, and
 * rows of earlier generations.
 */
import { startsWith } from "@stamp/base";
import { intact, type Plan, scanRows } from "../plan.ts";
import { decodeKey } from "../rows/key.ts";
import type { QueueEdit } from "./queue-edit.ts";
import { expiryFrom, expiryKey, generationFrom } from "./queue-keys.ts";

/** Longest time after which expired messages are removed, when anybody comes, in milliseconds. */
const sweepEveryMs = 1_000;
const sweepLimits = { rowsMax: 500, bytesMax: 1024 * 1024, deletedMax: 2_000 } as const;
const garbageLimits = { rowsMax: 64, bytesMax: 1024 * 1024, deletedMax: 2_000 } as const;
const afterAllMessages = Number.MAX_SAFE_INTEGER;

/** Removes expired messages; true: some are left for the next time. */
export function* sweepExpired(edit: QueueEdit, now = false): Plan<boolean> {
  const { sweptMs, sweptMessage, count } = edit.state;
  const stoppedMidway = sweptMessage !== afterAllMessages;
  if (count === 0 || (!stoppedMidway && edit.nowMs - sweptMs < (now ? 1 : sweepEveryMs))) return false;
  const low = stoppedMidway
    ? expiryKey(edit.messages, edit.generation, sweptMs, sweptMessage + 1)
    : expiryFrom(edit.messages, edit.generation, sweptMs + 1);
  const page = yield* scanRows(low, expiryFrom(edit.messages, edit.generation, edit.nowMs + 1), sweepLimits);
  for (const row of page.rows) edit.removeContent(...expiryOf(row.key));
  const last = page.stoppedAt ?? (page.more ? page.rows.at(-1)?.key : undefined);
  if (last === undefined) {
    edit.moveSwept(edit.nowMs, afterAllMessages, page.deleted);
    return false;
  }
  // A row where it stopped was not looked at, or it is deleted: everything before it is done.
  const [message, expiresMs] = expiryOf(last);
  edit.moveSwept(expiresMs, page.stoppedAt === undefined ? message : message - 1, page.deleted);
  return true;
}

function expiryOf(key: Uint8Array): [message: number, expiresMs: number] {
  const objectName = intact(decodeKey(key))[2] ?? [];
  return [Number(objectName[4]), Number(objectName[3])];
}

/** Removes rows of cleared generations. */
export function* collectGarbage(edit: QueueEdit): Plan<void> {
  const { garbage } = edit.state;
  if (garbage === undefined) return;
  // A row that another stamp has made may say anything: nothing outside of the queue is looked at.
  const from = startsWith(garbage, edit.messages) ? garbage : generationFrom(edit.messages, 0);
  const page = yield* scanRows(from, generationFrom(edit.messages, edit.generation), garbageLimits);
  for (const row of page.rows) edit.drop(row.key);
  const last = page.stoppedAt ?? page.rows.at(-1)?.key;
  edit.change({ garbage: page.more ? last : undefined });
}
