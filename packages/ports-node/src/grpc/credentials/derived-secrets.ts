/**
 * Secrets that a stamp gives away. Each is derived from the secret of the stamp, tells nothing about it, and is good for one role:
 *
 *     for another stamp, by its name     geo-peer        front-ends take it, at the geo door
 *     for the location service           location-peer   the lock service, the stream manager and the partition manager take it
 *
 * Invariants:
 * - Whoever has the secret for one stamp can't make that for another: the name goes into the derivation.
 * - A rotation of the stamp's secret ends all of them.
 */
import { hkdfSync } from "node:crypto";
import type { Caller } from "@stamp/wire";

/** Role and names that a derived secret is good for. */
export interface DerivedRole {
  readonly caller: Caller;
  /** Stamp that the secret was made for; undefined: none, or a release that made one secret for all stamps. */
  readonly name?: string | undefined;
}

const derive = (secret: string, info: string): string => Buffer.from(hkdfSync("sha256", secret, "", info, 32)).toString("base64url");

/** A stamp's name, as in a certificate. */
const nameText = "[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?";
const isStampName = (name: string): boolean => new RegExp(`^${nameText}$`).test(name);
const pairSecret = new RegExp(`^geo-peer\\.(${nameText})\\.[\\w-]{43}$`);

/**
 * Returns the secret that the stamp `name` proves at the geo door of a stamp with this secret. Throws for a name that no certificate could
 * have.
 */
export function geoPeerSecretOf(secret: string, name: string): string {
  if (!isStampName(name)) throw new Error(`${name}: a stamp's name has letters, digits, dots and dashes, at most 64`);
  return `geo-peer.${name}.${derive(secret, `stamp geo peer secret v2\n${name}`)}`;
}

/** Returns the secret that releases before made for all other stamps together. */
export const sharedPeerSecretOf = (secret: string): string => `geo-peer.${derive(secret, "stamp geo peer secret v1")}`;

/** Returns the secret that a location service proves at the processes of a stamp with this secret. */
export const locationSecretOf = (secret: string): string => `location.${derive(secret, "stamp location secret v1")}`;

/** Returns the stamp that a secret was made for; undefined if it was made for none. */
export const stampNamedBy = (secret: string): string | undefined => pairSecret.exec(secret)?.[1];

/** True for a secret that a stamp with secret `secret` would give away: it is not the whole one of a stamp. */
export const isDerivedSecret = (secret: string): boolean => /^(?:geo-peer|location)\./.test(secret);

const locationCalls: readonly Caller[] = ["lock-service", "stream-manager", "partition-manager"];

/** Returns the derived secrets that a process of this role accepts. `name`: stamp that the caller says its secret is of. */
export function derivedSecrets(
  secret: string,
  role: Caller,
  name: string | undefined,
): readonly (DerivedRole & { readonly secret: string })[] {
  if (role === "front-end") {
    if (name === undefined) return [{ secret: sharedPeerSecretOf(secret), caller: "geo-peer" }];
    return isStampName(name) ? [{ secret: geoPeerSecretOf(secret, name), caller: "geo-peer", name }] : [];
  }
  return locationCalls.includes(role) ? [{ secret: locationSecretOf(secret), caller: "location-peer" }] : [];
}
