/**
 * The durable record of one lease name. It is written before the answer whenever its epoch rises, its end becomes known or its renewals
 * are refused; a renewal changes nothing durable. Format: docs/formats/lock-service.md.
 */
import type { Checksum, LeaseEpoch, Outcome } from "@stamp/base";
import { frameRecord, fromUtf8, leaseEpoch, refused, unframeRecord, utf8 } from "@stamp/base";

export interface LeaseRecord {
  readonly name: string;
  /** Name of the process that got the lease last. */
  readonly holder: string;
  /** Identity of the holder's folder; empty in records of older versions. */
  readonly identity: string;
  /** Identity of the holder's start. */
  readonly instance: string;
  readonly incarnation: number;
  readonly address: string;
  /** Epoch of the last grant; never falls. */
  readonly epoch: LeaseEpoch;
  readonly termMs: number;
  /** True if the lease has ended. Recorded before anyone is told; a restart does not extend such a lease. */
  readonly ended: boolean;
  /** True if this epoch is never renewed again. */
  readonly refused: boolean;
}

const recordKind = 0x4c;
const recordVersion = 1;

export function encodeLease(record: LeaseRecord, checksum: Checksum): Uint8Array {
  const { name, holder, identity, instance, incarnation, address, epoch, termMs, ended, refused: refusedRenewals } = record;
  const text = JSON.stringify({ name, holder, identity, instance, incarnation, address, epoch, termMs, ended, refused: refusedRenewals });
  return frameRecord(recordKind, recordVersion, utf8(text), checksum);
}

export function decodeLease(bytes: Uint8Array, checksum: Checksum): Outcome<LeaseRecord> {
  const payload = unframeRecord("lease", recordKind, recordVersion, bytes, checksum);
  if (!payload.ok) return payload;
  try {
    const raw = JSON.parse(fromUtf8(payload.value)) as Record<string, unknown>;
    const text = (key: string): string => {
      const value = raw[key];
      if (typeof value !== "string") throw new TypeError(key);
      return value;
    };
    const newerText = (key: string): string => (raw[key] === undefined ? "" : text(key));
    const natural = (key: string): number => {
      const value = raw[key];
      if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) throw new TypeError(key);
      return value;
    };
    const flag = (key: string): boolean => {
      const value = raw[key];
      if (typeof value !== "boolean") throw new TypeError(key);
      return value;
    };
    return {
      ok: true,
      value: {
        name: text("name"),
        holder: text("holder"),
        identity: newerText("identity"),
        instance: newerText("instance"),
        incarnation: natural("incarnation"),
        address: text("address"),
        epoch: leaseEpoch(natural("epoch")),
        termMs: natural("termMs"),
        ended: flag("ended"),
        refused: flag("refused"),
      },
    };
  } catch (error) {
    return refused("dataLoss", "damaged", `lease record: ${String(error)}`);
  }
}
