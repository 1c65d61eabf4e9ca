/** The row of a container: between what is stored and what operations speak of. */
import type { ContainerScope } from "@stamp/base";
import { etagOf } from "../../etag.ts";
import type { Metadata } from "../../object-keys.ts";
import { intact, type PlanContext } from "../../plan.ts";
import type { Container } from "../../results.ts";
import { dateTimeOfMs, decodeRow, encodeRow } from "../../rows/row.ts";
import { blobSchema } from "../../rows/schemas.ts";
import { decodeSignedIdentifiers, encodeSignedIdentifiers, type SignedIdentifier } from "../../signed-identifiers.ts";
import { type Lease, viewOf } from "../protect/leases.ts";
import { daysLeft, type SoftDeletion } from "../protect/retention.ts";
import {
  bigCount,
  decodeLease,
  dictionaryOf,
  encodeLease,
  flag,
  int,
  metadataOf,
  ms,
  optionalMs,
  optionalTime,
  text,
} from "./row-values.ts";

export interface ContainerState extends ContainerScope {
  readonly etagSequence: number;
  readonly lastModifiedMs: number;
  readonly metadata: Metadata;
  readonly incarnation: number;
  readonly publicAccess: string;
  readonly signedIdentifiers: readonly SignedIdentifier[];
  readonly lease: Lease | undefined;
  /** Whether something inside was ever protected by an immutability policy or a legal hold. */
  readonly hasProtected: boolean;
  /** Sequence of the commit in which a deletion began to look through the container; 0: none stands. */
  readonly deletionBegun: number;
  /** Facts about the deletion of a container that is kept until its purge. */
  readonly deleted: SoftDeletion | undefined;
}

export const encodeContainer = (state: ContainerState): Uint8Array =>
  encodeRow(blobSchema, {
    etag: BigInt(state.etagSequence),
    lastModified: dateTimeOfMs(state.lastModifiedMs),
    metadata: dictionaryOf(state.metadata),
    incarnation: BigInt(state.incarnation),
    publicAccess: text(state.publicAccess),
    signedIdentifiers: encodeSignedIdentifiers(state.signedIdentifiers),
    ...encodeLease(state.lease),
    hasProtected: flag(state.hasProtected),
    deletionBegun: bigCount(state.deletionBegun),
    defaultEncryptionScope: text(state.defaultEncryptionScope),
    denyEncryptionScopeOverride: flag(state.denyEncryptionScopeOverride),
    deletedAt: optionalTime(state.deleted?.atMs),
    purgeAt: optionalTime(state.deleted?.purgeMs),
  });

export function decodeContainer(bytes: Uint8Array): ContainerState {
  const row = intact(decodeRow(blobSchema, bytes));
  const atMs = optionalMs(row.deletedAt);
  return {
    etagSequence: int(row.etag),
    lastModifiedMs: ms(row.lastModified),
    metadata: metadataOf(row.metadata),
    incarnation: int(row.incarnation),
    publicAccess: row.publicAccess ?? "",
    signedIdentifiers: decodeSignedIdentifiers(row.signedIdentifiers),
    lease: decodeLease(row),
    hasProtected: row.hasProtected ?? false,
    deletionBegun: int(row.deletionBegun),
    defaultEncryptionScope: row.defaultEncryptionScope ?? "",
    denyEncryptionScopeOverride: row.denyEncryptionScopeOverride ?? false,
    deleted: atMs === undefined ? undefined : { atMs, purgeMs: ms(row.purgeAt) },
  };
}

export const containerOf = (context: PlanContext, name: string, state: ContainerState): Container => ({
  name,
  etag: etagOf(state.etagSequence),
  lastModifiedMs: state.lastModifiedMs,
  metadata: state.metadata,
  incarnation: state.incarnation,
  publicAccess: state.publicAccess,
  signedIdentifiers: state.signedIdentifiers,
  lease: viewOf(state.lease, context.leases),
  hasProtected: state.hasProtected,
  deletionBegun: state.deletionBegun,
  defaultEncryptionScope: state.defaultEncryptionScope,
  denyEncryptionScopeOverride: state.denyEncryptionScopeOverride,
  ...(state.deleted
    ? {
        deletedMs: state.deleted.atMs,
        remainingRetentionDays: daysLeft(state.deleted, context.wallMs),
      }
    : {}),
});
