/**
 * Records of the location service, in the metadata store of its lock service (docs/formats/location.md):
 *
 *   location/stamps/<name>      'T' 1, JSON   StampRecord
 *   location/accounts/<name>    'A' 1, JSON   AccountRecord
 *
 * Every value is framed (@stamp/base framed.ts).
 */
import type { Checksum, Outcome } from "@stamp/base";
import { formatVersions, frameRecord, fromUtf8, ok, refused, unframeRecord, utf8 } from "@stamp/base";
import type { GeoAccount } from "./operations.ts";
import type { StampState } from "./placement.ts";

export const locationPrefix = "location/";
const stampPrefix = `${locationPrefix}stamps/`;
const accountPrefix = `${locationPrefix}accounts/`;
export const stampKey = (name: string): string => `${stampPrefix}${name}`;
export const accountKey = (name: string): string => `${accountPrefix}${name}`;

export interface StampRecord {
  readonly name: string;
  readonly location: string;
  /** Addresses of the stamp's lock services, separated by commas. */
  readonly lockService: string;
  /** Identity of the stamp, recorded when it was added. */
  readonly stampId: string;
  /** Name of the file with the stamp's secret; empty: the location service's own secret, or none. */
  readonly secret: string;
  readonly state: StampState;
  /** Addresses of the stamp's front-ends, host:port; undefined: not known. */
  readonly doors?: readonly string[];
  /** True if a person declared the stamp lost, and some commands are still owed to it. */
  readonly lost?: boolean;
}

export interface AccountRecord extends GeoAccount {
  /** Keys that the account gets, in a record of a release before 28 November 2026, until the stamp has created it. Never written. */
  readonly newKeys?: readonly string[];
}

export type LocationRecord =
  | { readonly kind: "stamp"; readonly record: StampRecord }
  | { readonly kind: "account"; readonly record: AccountRecord };

const kinds = { stamp: 0x54, account: 0x41 } as const;

export function encodeLocationRecord({ kind, record }: LocationRecord, checksum: Checksum): Uint8Array<ArrayBuffer> {
  return frameRecord(kinds[kind], formatVersions.location, utf8(JSON.stringify(record)), checksum);
}

/** Decodes a record. Refuses with `damaged`, or with `newerFormat` if a newer release wrote it. */
export function decodeLocationRecord(key: string, bytes: Uint8Array, checksum: Checksum): Outcome<LocationRecord> {
  const kind = key.startsWith(stampPrefix) ? "stamp" : key.startsWith(accountPrefix) ? "account" : undefined;
  if (kind === undefined) return refused("dataLoss", "damaged", `key ${key}: this software knows no such key`);
  const payload = unframeRecord("location", kinds[kind], formatVersions.location, bytes, checksum);
  if (!payload.ok) return payload;
  const record = JSON.parse(fromUtf8(payload.value)) as StampRecord & AccountRecord;
  const whole = kind === "stamp" ? isStamp(record) && key === stampKey(record.name) : isAccount(record) && key === accountKey(record.name);
  return whole ? ok({ kind, record } as LocationRecord) : refused("dataLoss", "damaged", `key ${key}: a field of the record is missing`);
}

const isStamp = ({ name, location, lockService, stampId, secret, state }: StampRecord): boolean =>
  [name, location, lockService, stampId, secret].every((text) => typeof text === "string") &&
  ["open", "closed", "draining"].includes(state);

const isAccount = ({ name, primary, epoch, operation, seeded }: AccountRecord): boolean =>
  typeof name === "string" &&
  typeof primary === "string" &&
  Number.isSafeInteger(epoch) &&
  Number.isSafeInteger(operation) &&
  typeof seeded === "boolean";
