/**
 * Foundations of every package: assertions, `Outcome`, failures, branded units, bytes, seeded random numbers, names of
 * rules and versions of formats. Depends on nothing.
 */
export { AssertionError, assert, present } from "./assert.ts";
export { isTagKey, isTagValue } from "./blob-tags.ts";
export {
  type ExtentId,
  type ExtentVersion,
  extentId,
  extentVersion,
  type LeaseEpoch,
  leaseEpoch,
  type OwnerEpoch,
  ownerEpoch,
  type SmTerm,
  smTerm,
} from "./brand.ts";
export {
  compareBytes,
  concatBytes,
  emptyBytes,
  equalBytes,
  fromHex,
  fromUtf8,
  prefixEnd,
  startsWith,
  toHex,
  totalLength,
  utf8,
} from "./bytes.ts";
export { type AbsoluteForm, parseAbsoluteForm } from "./connections/absolute-form.ts";
export { clientAddress } from "./connections/client-address.ts";
export { ConnectionPlaces, type PlacesOptions } from "./connections/connection-places.ts";
export { type HeldHead, headsToEnd } from "./connections/held-heads.ts";
export { Pace } from "./connections/pace.ts";
export { loggedTarget, urlWithoutSignature } from "./connections/shown-url.ts";
export { type Checksum, frameRecord, unframeRecord } from "./encoding/framed.ts";
export { secondsSince2026, timeNumber } from "./encoding/time-number.ts";
export { ByteReader, ByteWriter, DecodeError } from "./encoding/varint.ts";
export {
  type Failed,
  type Failure,
  type FailureCode,
  FailureError,
  type FailureReason,
  type Outcome,
  ok,
  refused,
  unknownOutcome,
  unwrap,
} from "./failure.ts";
export { featureLevel, featureLevels, levelAllows, neededLevels, versionAtLevel } from "./feature-level.ts";
export { firstInOrder } from "./first-in-order.ts";
export { type FormatName, formatVersions, type NewerFormat, newerFormat, release, unknownFormat } from "./formats.ts";
export { bucketsMs, Histogram } from "./histogram.ts";
export { holdersOf, PayloadHolders } from "./memory/payload-holders.ts";
export { ReusedMemory, type ReusedMemoryOptions } from "./memory/reused-memory.ts";
export { allLabelled, counter, gauge, histogram, insideFacts, type Labels, type Metric, type Metrics, summary } from "./metrics.ts";
export { OrderedIds } from "./ordered-ids.ts";
export { Prng } from "./prng.ts";
export { allRules, type RuleName, type Rules, rulesWithout } from "./rules.ts";
export type { BlobHeaders, ContainerScope, ShownBlob, ShownContainer, ShownCopy, ShownLease } from "./shown-blob.ts";
export { WakeUp } from "./waiting/bell.ts";
export { JoinedWork, WorkInTurn } from "./waiting/shared-work.ts";
