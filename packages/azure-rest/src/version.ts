/**
 * `x-ms-version`. Any well-formed version is accepted; one newer than we know gets the newest behaviour we know. What changed between
 * versions is in `behaviours`, and nowhere else is a version compared.
 */
import { isCivilDate } from "./dates.ts";
import { badHeader, type Parsed, parsed } from "./rest-error.ts";

export const newestVersion = "2026-10-06";

const behaviours = {
  /** ETags are in quotes. */
  quotedEtags: "2011-08-18",
  /** `bytes=first-` is a range. */
  openRanges: "2011-08-18",
  /** A Content-Length of 0 is signed as the empty text, not as "0". */
  zeroLengthSignedEmpty: "2015-02-21",
  /** A message may live for any time, or for ever (-1); before, for a week at most. */
  anyTimeToLive: "2017-07-29",
  /** Content-MD5 of a Put Block is answered only when the request had it, and x-ms-content-crc64 exists. */
  contentCrc64: "2019-02-02",
  /** Requests may bring a key of the customer. */
  customerKeys: "2019-02-02",
  /** Service properties have DeleteRetentionPolicy, StaticWebsite, and in the former AllowPermanentDelete. */
  deleteRetentionPolicy: "2017-07-29",
  staticWebsite: "2018-03-28",
  permanentDelete: "2020-02-10",
  /** Names that XML can't carry are listed percent-encoded. */
  encodedNames: "2021-02-12",
} as const;
export type Behaviour = keyof typeof behaviours;

/** What the text that a SAS signs has since which `sv` (auth/sas-string.ts). */
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
} as const;

export const sasIsSince = (version: string, what: keyof typeof sasSince): boolean => version >= sasSince[what];

/** Whether it has the form of one; versions that we don't know are taken for the newest that we do. */
export const isVersion = (text: string): boolean => isCivilDate(text);

const mebibyte = 1024 * 1024;
/** Newest first. */
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

/** The version that is used. `fallback` is for requests that name none: the account's default version, or else the newest. */
export function parseVersion(header: string | undefined, fallback: string = newestVersion): Parsed<string> {
  if (header === undefined) return parsed(fallback > newestVersion ? newestVersion : fallback);
  if (!isCivilDate(header)) return badHeader("x-ms-version", header, "Not a version of the form YYYY-MM-DD.");
  return parsed(header > newestVersion ? newestVersion : header);
}

export const behaves = (version: string, behaviour: Behaviour): boolean => version >= behaviours[behaviour];

export function bodyLimitsOf(version: string): BodyLimits {
  return bodyLimits.find((limits) => version >= limits.since) ?? bodyLimits[3];
}

/** `etag` in quotes. */
export const etagHeader = (version: string, etag: string): string => (behaves(version, "quotedEtags") ? etag : etag.replaceAll('"', ""));
