/** Headers that set a blob's tags, tier, expiry, immutability policy and legal hold, and headers that name a snapshot or version. */
import { parseIsoMicros, parseRfc1123 } from "../dates.ts";
import type { HttpHeaders } from "../headers.ts";
import { badHeader, badQuery, notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import { parseQuery, type Query, queryValue } from "../target.ts";
import type { Tags } from "./lists-xml.ts";
import { parseTagsHeader } from "./tags.ts";

const missing = (name: string): ReturnType<typeof rejected> => rejected("MissingRequiredHeader", { HeaderName: name });

/** Tiers of block blobs. Those of page blobs are for accounts of another kind. */
const tiers = ["Hot", "Cool", "Cold", "Archive"] as const;
const pageBlobTier = /^P\d{1,2}$/;

export function parseTier(headers: HttpHeaders): Parsed<string | undefined> {
  const text = headers["x-ms-access-tier"];
  if (text === undefined) return parsed(undefined);
  const priority = headers["x-ms-rehydrate-priority"];
  if (priority !== undefined && priority !== "Standard" && priority !== "High") return badHeader("x-ms-rehydrate-priority", priority);
  const tier = tiers.find((known) => known.toLowerCase() === text.toLowerCase());
  if (tier !== undefined) return parsed(tier);
  if (text.toLowerCase() === "smart") return notImplemented("The access tier Smart");
  return pageBlobTier.test(text) ? rejected("BlobAccessTierNotSupportedForAccountType") : badHeader("x-ms-access-tier", text);
}

export function requiredTier(headers: HttpHeaders): Parsed<string> {
  const tier = parseTier(headers);
  if (!tier.ok) return tier;
  return tier.value === undefined ? missing("x-ms-access-tier") : parsed(tier.value);
}

export interface ImmutabilityHeaders {
  readonly untilMs: number;
  readonly mode: string;
}

export function parseImmutability(headers: HttpHeaders): Parsed<ImmutabilityHeaders | undefined> {
  const until = headers["x-ms-immutability-policy-until-date"];
  const mode = headers["x-ms-immutability-policy-mode"];
  if (until === undefined) return mode === undefined ? parsed(undefined) : missing("x-ms-immutability-policy-until-date");
  const untilMs = parseRfc1123(until.trim());
  if (untilMs === undefined) return badHeader("x-ms-immutability-policy-until-date", until);
  const known = ["Unlocked", "Locked"].find((name) => name.toLowerCase() === (mode ?? "Unlocked").toLowerCase());
  return known === undefined ? badHeader("x-ms-immutability-policy-mode", mode ?? "") : parsed({ untilMs, mode: known });
}

export function requiredImmutability(headers: HttpHeaders): Parsed<ImmutabilityHeaders> {
  const policy = parseImmutability(headers);
  if (!policy.ok) return policy;
  return policy.value === undefined ? missing("x-ms-immutability-policy-until-date") : parsed(policy.value);
}

export function parseLegalHold(headers: HttpHeaders): Parsed<boolean | undefined> {
  const text = headers["x-ms-legal-hold"]?.toLowerCase();
  if (text === undefined) return parsed(undefined);
  return text === "true" || text === "false" ? parsed(text === "true") : badHeader("x-ms-legal-hold", text);
}

export function requiredLegalHold(headers: HttpHeaders): Parsed<boolean> {
  const hold = parseLegalHold(headers);
  if (!hold.ok) return hold;
  return hold.value === undefined ? missing("x-ms-legal-hold") : parsed(hold.value);
}

/** State that a request sets on the blob which it makes. */
export interface NewBlobStateHeaders {
  readonly tags: Tags;
  /** Access tier of the blob; empty: the account's default. */
  readonly accessTier: string;
  readonly immutability: ImmutabilityHeaders | undefined;
  readonly legalHold: boolean;
}

export function parseNewBlobState(headers: HttpHeaders): Parsed<NewBlobStateHeaders> {
  const tags = parseTagsHeader(headers["x-ms-tags"]);
  if (!tags.ok) return tags;
  const tier = parseTier(headers);
  if (!tier.ok) return tier;
  const immutability = parseImmutability(headers);
  if (!immutability.ok) return immutability;
  const hold = parseLegalHold(headers);
  if (!hold.ok) return hold;
  return parsed({
    tags: tags.value,
    accessTier: tier.value ?? "",
    immutability: immutability.value,
    legalHold: hold.value ?? false,
  });
}

export interface ExpiryHeaders {
  readonly option: "never" | "relativeToCreation" | "relativeToNow" | "absolute";
  /** A length, or a time since 1970. */
  readonly timeMs: number;
}

const expiryOptions: Readonly<Record<string, ExpiryHeaders["option"]>> = {
  neverexpire: "never",
  relativetocreation: "relativeToCreation",
  relativetonow: "relativeToNow",
  absolute: "absolute",
};

export function parseExpiry(headers: HttpHeaders): Parsed<ExpiryHeaders> {
  const text = headers["x-ms-expiry-option"];
  if (text === undefined) return missing("x-ms-expiry-option");
  const option = Object.hasOwn(expiryOptions, text.toLowerCase()) ? expiryOptions[text.toLowerCase()] : undefined;
  if (option === undefined) return badHeader("x-ms-expiry-option", text);
  const time = headers["x-ms-expiry-time"];
  if (option === "never") return time === undefined ? parsed({ option, timeMs: 0 }) : badHeader("x-ms-expiry-time", time);
  if (time === undefined) return missing("x-ms-expiry-time");
  const timeMs = option === "absolute" ? parseRfc1123(time.trim()) : /^\d{1,15}$/.test(time) ? Number(time) : undefined;
  return timeMs === undefined ? badHeader("x-ms-expiry-time", time) : parsed({ option, timeMs });
}

/** Microseconds since 1970; 0: the blob itself. */
export interface BlobStamps {
  readonly snapshotStamp: number;
  readonly versionStamp: number;
}

export function parseStamps(query: Query): Parsed<BlobStamps> {
  const snapshot = stampOf(query, "snapshot");
  if (!snapshot.ok) return snapshot;
  const version = stampOf(query, "versionid");
  if (!version.ok) return version;
  if (snapshot.value > 0 && version.value > 0) {
    return badQuery("versionid", queryValue(query, "versionid") ?? "", "A snapshot and a version exclude each other.");
  }
  return parsed({ snapshotStamp: snapshot.value, versionStamp: version.value });
}

/**
 * Parses the earlier snapshot of Get Page Ranges Diff, in the query or in a URL; undefined if no difference is asked
 * for.
 */
export function parsePreviousSnapshot(query: Query, headers: HttpHeaders): Parsed<number | undefined> {
  const url = headers["x-ms-previous-snapshot-url"];
  const mark = url?.indexOf("?") ?? -1;
  const named = url === undefined ? parsed(query) : parseQuery(mark < 0 ? "" : url.slice(mark + 1));
  if (!named.ok) return badHeader("x-ms-previous-snapshot-url", url ?? "");
  const name = url === undefined ? "prevsnapshot" : "snapshot";
  if (!named.value.has(name)) return url === undefined ? parsed(undefined) : badHeader("x-ms-previous-snapshot-url", url);
  return stampOf(named.value, name);
}

/** Parses a timestamp of a snapshot or version. One with finer time than Stamp gives names nothing. */
function stampOf(query: Query, name: string): Parsed<number> {
  const text = queryValue(query, name);
  if (text === undefined) return parsed(0);
  const micros = parseIsoMicros(text);
  return micros === undefined || micros < 1 ? badQuery(name, text, "Not a DateTime that names a snapshot or a version.") : parsed(micros);
}
