/**
 * `x-ms-version`. The versions of the service are listed; any other older one than the newest never existed. A newer one gets the newest
 * behaviour we know, unless the operator wants it refused. What changed between versions is in `behaviours`, and nowhere else is a
 * version compared.
 */
import { isCivilDate } from "./dates.ts";
import { badHeader, type Parsed, parsed } from "./rest-error.ts";

/**
 * Every version that the service had, oldest first. Sources: the reference's "Previous Azure Storage service versions" (to 2015-12-11), the
 * versions that the resource provider takes as a default (2008-10-27 to 2023-11-03), the enumerations of the SDKs (from 2019-02-02). In none
 * of them, but seen: 2018-06-17 (preview of Data Lake Storage) and 2019-10-10 (SAS that the portal made in 2020).
 */
const versions = [
  ...["2008-10-27", "2009-04-14", "2009-07-17", "2009-09-19", "2011-08-18", "2012-02-12", "2013-08-15", "2014-02-14", "2015-02-21"],
  ...["2015-04-05", "2015-07-08", "2015-12-11", "2016-05-31", "2017-04-17", "2017-07-29", "2017-11-09", "2018-03-28", "2018-06-17"],
  ...["2018-11-09", "2019-02-02", "2019-07-07", "2019-10-10", "2019-12-12", "2020-02-10", "2020-04-08", "2020-06-12", "2020-08-04"],
  ...["2020-10-02", "2020-12-06", "2021-02-12", "2021-04-10", "2021-06-08", "2021-08-06", "2021-10-04", "2021-12-02", "2022-11-02"],
  ...["2023-01-03", "2023-05-03", "2023-08-03", "2023-11-03", "2024-02-04", "2024-05-04", "2024-08-04", "2024-11-04", "2025-01-05"],
  ...["2025-05-05", "2025-07-05", "2025-11-05", "2026-02-06", "2026-04-06", "2026-06-06", "2026-10-06"],
] as const;
const known: ReadonlySet<string> = new Set(versions);

export const newestVersion = "2026-10-06";

/** Version of a request that names none and whose account has no default: of a read by everybody, for one. */
export const unversioned = "2009-09-19";

const behaviours = {
  /** First version that answers with ETags in quotes. */
  quotedEtags: "2011-08-18",
  /** `bytes=first-` is a range. */
  openRanges: "2011-08-18",
  /** Blobs are answered with Accept-Ranges. */
  acceptRanges: "2011-08-18",
  /** Reads may combine conditions, and name several ETags in one. */
  combinedConditions: "2013-08-15",
  /** First version that takes bearer tokens. */
  bearer: "2017-11-09",
  /** A Content-Length of 0 is signed as the empty text, not as "0". */
  zeroLengthSignedEmpty: "2015-02-21",
  /** A message may live for any time, or for ever (-1); before, for a week at most. */
  anyTimeToLive: "2017-07-29",
  /** Content-MD5 of a Put Block is answered only when the request had it, and x-ms-content-crc64 exists. */
  contentCrc64: "2019-02-02",
  /** Requests may bring a key of the customer. */
  customerKeys: "2019-02-02",
  /** Requests may name encryption scopes. */
  encryptionScopes: "2019-07-07",
  /** Containers show the encryption scope of their blobs. */
  containerEncryptionScopes: "2019-02-02",
  /** Service properties have DeleteRetentionPolicy, StaticWebsite, and in the former AllowPermanentDelete. */
  deleteRetentionPolicy: "2017-07-29",
  staticWebsite: "2018-03-28",
  permanentDelete: "2020-02-10",
  /** Names that XML can't carry are listed percent-encoded. */
  encodedNames: "2021-02-12",
} as const;
export type Behaviour = keyof typeof behaviours;

/** Fields of the text that a SAS signs, and the `sv` since which each is there (auth/sas-string.ts). */
const signedFields = {
  responseOverrides: "2013-08-15",
  serviceInResource: "2015-02-21",
  ipAndProtocol: "2015-04-05",
  resourceAndTime: "2018-11-09",
  delegationAgents: "2020-02-10",
  encryptionScope: "2020-12-06",
  delegatedUser: "2025-07-05",
  boundHeaders: "2026-04-06",
} as const;

export const signedSince = (version: string, what: keyof typeof signedFields): boolean => version >= signedFields[what];

/** Letters of `sp` that newer versions brought; in a SAS of an older one they say nothing. */
const letterSince: Readonly<Record<string, string>> = {
  x: "2019-12-12",
  t: "2019-12-12",
  f: "2019-12-12",
  y: "2020-02-10",
  i: "2020-06-12",
};

/** Returns the letters that count in a SAS of this version; `since` of an operation may ask more of some (permissions.ts). */
export const lettersThatCount = (version: string, letters: string, since: Readonly<Record<string, string>> = {}): string =>
  [...letters].filter((letter) => version >= (letterSince[letter] ?? "") && version >= (since[letter] ?? "")).join("");

/** First version of each kind of SAS, and of a signed resource (`sr`). */
const sasSince = {
  account: "2015-04-05",
  delegation: "2018-11-09",
  tableOrQueue: "2012-02-12",
  bs: "2018-11-09",
  bv: "2019-12-12",
  d: "2020-02-10",
} as const;

export const sasIsSince = (version: string, what: keyof typeof sasSince): boolean => version >= sasSince[what];

/** True if the service had this version, or if the version is newer than all known ones. */
export const isVersion = (text: string): boolean => known.has(text) || isNewer(text);

/** True if the version is newer than every version in this table. */
export const isNewer = (text: string): boolean => text > newestVersion && isCivilDate(text);

const mebibyte = 1024 * 1024;
/** Largest bodies by service version, newest version first. */
const bodyLimits = [
  { since: "2022-11-02", putBlobBytesMax: 5000 * mebibyte, blockBytesMax: 4000 * mebibyte, appendBlockBytesMax: 100 * mebibyte },
  { since: "2019-12-12", putBlobBytesMax: 5000 * mebibyte, blockBytesMax: 4000 * mebibyte, appendBlockBytesMax: 4 * mebibyte },
  { since: "2016-05-31", putBlobBytesMax: 256 * mebibyte, blockBytesMax: 100 * mebibyte, appendBlockBytesMax: 4 * mebibyte },
  { since: "0000-00-00", putBlobBytesMax: 64 * mebibyte, blockBytesMax: 4 * mebibyte, appendBlockBytesMax: 4 * mebibyte },
] as const;

export interface BodyLimits {
  readonly putBlobBytesMax: number;
  readonly blockBytesMax: number;
  readonly appendBlockBytesMax: number;
}

/** Returns the version that a request is served in. `strict`: a newer one than we know is refused. */
export function parseVersion(text: string, strict = false): Parsed<string> {
  if (isNewer(text)) return strict ? badHeader("x-ms-version", text, `${newestVersion} is the newest.`) : parsed(newestVersion);
  return known.has(text) ? parsed(text) : badHeader("x-ms-version", text, "Not a version of the service.");
}

export const behavesAs = (version: string, behaviour: Behaviour): boolean => version >= behaviours[behaviour];

export function bodyLimitsOf(version: string): BodyLimits {
  return bodyLimits.find((limits) => version >= limits.since) ?? bodyLimits[3];
}

/** Returns the ETag header. `etag` in quotes. */
export const etagHeader = (version: string, etag: string): string => (behavesAs(version, "quotedEtags") ? etag : etag.replaceAll('"', ""));
