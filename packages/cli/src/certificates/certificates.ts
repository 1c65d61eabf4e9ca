/**
 * A private certificate authority for one stamp, and a certificate of it for the REST doors. ECDSA P-256, made by @peculiar/x509; the
 * authority signs servers only and can't make further authorities.
 */
// @peculiar/x509 finds its parts by it.
import "reflect-metadata";
import { webcrypto } from "node:crypto";
import { isIP } from "node:net";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

import { type PeerName, peerUri } from "@stamp/ports-node";

export interface PemPair {
  readonly certificate: string;
  readonly key: string;
}

const signing = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const dayMs = 24 * 60 * 60 * 1000;
const authorityDays = 3650;
/** Longest validity that clients accept, in days. */
const serverDaysMax = 397;
const peerDays = 365;
const crypto = webcrypto as Crypto;

const newKeys = (): Promise<webcrypto.CryptoKeyPair> => webcrypto.subtle.generateKey(signing, true, ["sign", "verify"]);
const newSerial = (): string =>
  Buffer.from(crypto.getRandomValues(new Uint8Array(16)))
    .toString("hex")
    .replace(/^[89a-f]/, "7");

async function keyPem(key: CryptoKey): Promise<string> {
  return `${PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY")}\n`;
}

/** Returns the times of a certificate. It begins a little in the past, for clocks that differ. */
const times = (nowMs: number, days: number) => ({ notBefore: new Date(nowMs - dayMs), notAfter: new Date(nowMs + days * dayMs) });

export async function makeAuthority(name: string, nowMs: number): Promise<PemPair> {
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: newSerial(),
      name: `CN=${name}`,
      ...times(nowMs, authorityDays),
      signingAlgorithm: signing,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, crypto),
      ],
    },
    crypto,
  );
  return { certificate: `${certificate.toString("pem")}\n`, key: await keyPem(keys.privateKey) };
}

/** `hosts`: names (with `*.` for one label) and IP addresses; the first is the subject. */
export async function makeServerCertificate(
  authority: PemPair,
  hosts: readonly string[],
  nowMs: number,
  days: number = serverDaysMax,
): Promise<PemPair> {
  const issuer = new X509Certificate(authority.certificate);
  const signingKey = await crypto.subtle.importKey("pkcs8", PemConverter.decodeFirst(authority.key), signing, false, ["sign"]);
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: newSerial(),
      subject: `CN=${hosts[0] ?? "stamp"}`,
      issuer: issuer.subject,
      ...times(nowMs, Math.min(days, serverDaysMax)),
      signingAlgorithm: signing,
      publicKey: keys.publicKey,
      signingKey,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
        new SubjectAlternativeNameExtension(hosts.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value }) as const)),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, crypto),
      ],
    },
    crypto,
  );
  return { certificate: `${certificate.toString("pem")}\n${authority.certificate}`, key: await keyPem(keys.privateKey) };
}

/** Makes a certificate by which a process proves its name to others, as their caller and as their server. */
export async function makePeerCertificate(authority: PemPair, name: PeerName, nowMs: number, days: number = peerDays): Promise<PemPair> {
  const issuer = new X509Certificate(authority.certificate);
  const signingKey = await crypto.subtle.importKey("pkcs8", PemConverter.decodeFirst(authority.key), signing, false, ["sign"]);
  const keys = await newKeys();
  const certificate = await X509CertificateGenerator.create(
    {
      serialNumber: newSerial(),
      subject: `CN=${name.name}`,
      issuer: issuer.subject,
      ...times(nowMs, days),
      signingAlgorithm: signing,
      publicKey: keys.publicKey,
      signingKey,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
        new SubjectAlternativeNameExtension([{ type: "url", value: peerUri(name) }]),
        await SubjectKeyIdentifierExtension.create(keys.publicKey, false, crypto),
      ],
    },
    crypto,
  );
  return { certificate: `${certificate.toString("pem")}\n`, key: await keyPem(keys.privateKey) };
}

/** Services with a host suffix of their own; static websites have one, too. */
const services = ["blob", "queue", "table", "web"] as const;

/**
 * Where the REST doors are reached: this machine, and every host that is given, which may have accounts before it
 * (acct.blob.storage.example for storage.example).
 */
export function certificateHosts(hosts: readonly string[]): string[] {
  const names = ["localhost", ...hosts.filter((host) => isIP(host) === 0)];
  const withAccounts = names.flatMap((name) => [name, ...services.flatMap((service) => [`${service}.${name}`, `*.${service}.${name}`])]);
  return [...new Set([...withAccounts, "127.0.0.1", "::1", ...hosts.filter((host) => isIP(host) !== 0)])];
}
