/**
 * TLS between the processes of a stamp, below everything else that a connection carries: both sides show a certificate of the stamp's own
 * authority, whose subject alternative name says who they are: stamp://STAMP/ROLE/NAME. The proof of the secret is made inside as well.
 *
 * Invariants:
 * - No byte of the bus or of HTTP/2 is read from a caller, or sent to a server, before its certificate was verified.
 * - A certificate has exactly one name of the stamp. Another stamp's is refused, also if the same authority signed it.
 * - A caller accepts only a process as its server: the operator's certificate serves nothing, nor does that of another stamp.
 * - Another stamp (role `geo-peer`, with that stamp's name) gets no connection but to a front-end.
 * - A caller that proves a derived secret shows a certificate for the same use: a certificate of another role that this stamp once gave away opens
 *   nothing without the whole secret. If secret and certificate are of two stamps, the caller has the name of neither.
 */
import type { X509Certificate } from "node:crypto";
import type { ConnectionOptions, PeerCertificate, SecureContext, TLSSocket } from "node:tls";
import { type Caller, isCaller } from "@stamp/wire";
import type { Proven } from "./credential.ts";

/** Name of a process, as its certificate holds it. */
export interface PeerName {
  readonly stamp: string;
  readonly role: Caller;
  readonly name: string;
}

/**
 * Certificate that a process shows, and the authorities that it trusts. Another object after its files were renewed.
 */
export interface PeerTls {
  readonly own: PeerName;
  /** TLS context with the certificate, the key and the authorities. */
  readonly context: SecureContext;
  /** Certificate, key and authorities as PEM. */
  readonly pem: { readonly cert: string; readonly key: string; readonly ca: string };
  /** Time at which the own certificate ends, in milliseconds since 1970. */
  readonly endsAtMs: number;
}

const label = "[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?";
const uri = new RegExp(`^stamp://(${label})/(${label})/(${label})$`);

/** Returns the URI of a name for a certificate. Throws if the name can't be in one. */
export function peerUri({ stamp, role, name }: PeerName): string {
  const text = `stamp://${stamp}/${role}/${name}`;
  if (parsePeerUri(text) === undefined) throw new Error(`${text}: names have letters, digits, dots and dashes, at most 64`);
  return text;
}

export function parsePeerUri(text: string): PeerName | undefined {
  const [, stamp, role, name] = uri.exec(text) ?? [];
  if (stamp === undefined || role === undefined || name === undefined || !isCaller(role)) return undefined;
  return { stamp, role, name };
}

/** Returns the one name of a certificate; a text that says why there is none. `names`: as node tells subject alternative names. */
export function peerNameIn(names: string | undefined): PeerName | string {
  // Node puts a name with a comma or a quote into quotes, as JSON: none of those can be ours.
  const uris = (names ?? "").split(", ").filter((each) => each.startsWith("URI:"));
  if (uris.length !== 1) return `its certificate has ${uris.length} names of a process, and needs one`;
  const name = parsePeerUri((uris[0] ?? "").slice("URI:".length));
  return name ?? `its certificate has no name of a process: ${uris[0]}`;
}

export const peerNameOf = (certificate: Pick<X509Certificate, "subjectAltName">): PeerName | string =>
  peerNameIn(certificate.subjectAltName);

/** Returns why a verified certificate is none for this use; undefined if it is one. */
export function unfitCertificate(own: PeerName, peer: PeerName | string, use: "caller" | "server"): string | undefined {
  if (typeof peer === "string") return peer;
  if (peer.stamp !== own.stamp) return `its certificate is of the stamp ${peer.stamp}, this process is of ${own.stamp}`;
  if (use === "server" && peer.role === "operator") return "its certificate is an operator's, which serves nothing";
  if (peer.role === "geo-peer") {
    if (use === "server") return "its certificate is of another stamp, which serves nothing here";
    if (own.role !== "front-end") return `its certificate is of the stamp ${peer.name} (geo-peer), which only front-ends take`;
  }
  return undefined;
}

/** Returns the name of the caller behind a connection whose certificate was verified; a text that says why there is none. */
export function callerBehind(socket: TLSSocket, own: PeerName): PeerName | string {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return "it showed no certificate";
  const peer = peerNameOf(certificate);
  return typeof peer === "string" ? peer : (unfitCertificate(own, peer, "caller") ?? peer);
}

/** Returns the facts about a caller that has proven a secret, and whose certificate was verified; a text that says why both don't go together. */
export function provenTwice(by: Proven, certified: PeerName | undefined): Proven | string {
  if (certified === undefined) return by;
  const { role, name } = certified;
  if (by.isDerived !== true) return { ...by, caller: role, name };
  const needed = by.caller === "location-peer" ? "location-service" : by.caller;
  if (role !== needed)
    return `its secret is for the role ${by.caller}, and its certificate is of the role ${role}: it needs one of ${needed}`;
  // No stamp has a plus in its name: who compares names refuses the caller, and tells it why.
  return { ...by, name: by.name === undefined || by.name === name ? name : `${by.name}+${name}` };
}

/** Verifies the server's name in the place of its host name: addresses change, and a name is no address. */
export const checkServer =
  ({ own }: PeerTls) =>
  (_host: string, { subjectaltname }: Pick<PeerCertificate, "subjectaltname">): Error | undefined => {
    const why = unfitCertificate(own, peerNameIn(subjectaltname), "server");
    return why === undefined ? undefined : new Error(why);
  };

export const minVersion = "TLSv1.3";

export const dialOptions = (tls: PeerTls): ConnectionOptions => ({
  secureContext: tls.context,
  checkServerIdentity: checkServer(tls),
  rejectUnauthorized: true,
  minVersion,
});
