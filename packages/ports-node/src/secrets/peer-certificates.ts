/**
 * The certificate, the key and the authorities of a process, read from files and read again when they change, as the secret is
 * (`watched-secret.ts`): a renewed certificate is in use within a second, without a restart. Files that can't be used change nothing.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import type { Logger } from "@stamp/ports";
import { silentLogger } from "@stamp/ports";
import { minVersion, type PeerTls, peerNameOf } from "../grpc/credentials/peer-tls.ts";
import { ConfigError } from "../process/config.ts";
import { inWords } from "../process/in-words.ts";
import { sharedInterval } from "../time/shared-interval.ts";

export interface PeerFiles {
  /** PEM: the certificate of the process, and what is between it and an authority. */
  readonly cert: string;
  readonly key: string;
  /** PEM: certificates of one or more authorities; several while they are changed. */
  readonly ca: string;
}

const lookEveryMs = 1_000;
const endOfPem = "-----END CERTIFICATE-----";

/** Throws ConfigError, in words, for files that can't be used now. */
export function readPeerTls(files: PeerFiles, nowMs: number = Date.now()): PeerTls {
  const [cert, key, ca] = [read(files.cert), read(files.key), read(files.ca)];
  if (isOpenToOthers(files.key))
    throw new ConfigError(`the key ${files.key} can be read by other users of this machine: chmod 600 ${files.key}`);
  const certificate = within(files.cert, () => new X509Certificate(cert));
  const own = peerNameOf(certificate);
  if (typeof own === "string") throw new ConfigError(`${files.cert}: ${own}`);
  if (!certificate.checkPrivateKey(within(files.key, () => createPrivateKey(key))))
    throw new ConfigError(`the key ${files.key} is not the one of ${files.cert}`);
  const authorities = within(files.ca, () => splitPem(ca).map((each) => new X509Certificate(each)));
  if (authorities.length === 0) throw new ConfigError(`${files.ca} holds no certificate of an authority`);
  if (!authorities.some((each) => each.ca && certificate.verify(each.publicKey)))
    throw new ConfigError(`${files.cert} is signed by no authority in ${files.ca}`);
  const endsAtMs = Date.parse(certificate.validTo);
  if (endsAtMs <= nowMs) throw new ConfigError(`${files.cert} ended at ${new Date(endsAtMs).toISOString()}`);
  const context = within(files.cert, () => createSecureContext({ cert, key, ca, minVersion }));
  return { own, context, pem: { cert, key, ca }, endsAtMs };
}

/**
 * True if others than the owner can read or change the file. A key of root may be readable by a group: Kubernetes mounts secrets so, for the
 * group of the pod (`fsGroup`).
 */
function isOpenToOthers(path: string): boolean {
  const { mode, uid } = statSync(path);
  return (mode & (uid === 0 ? 0o037 : 0o077)) !== 0;
}

export class PeerCertificates {
  readonly #files: PeerFiles;
  readonly #logger: Logger;
  #tls: PeerTls;
  #seen: string;
  #problem = "";

  /** Reads the certificates. Throws ConfigError. */
  constructor(files: PeerFiles, logger: Logger = silentLogger) {
    this.#files = files;
    this.#logger = logger;
    this.#seen = stateOf(files);
    this.#tls = readPeerTls(files);
  }

  get tls(): PeerTls {
    return this.#tls;
  }

  /** Returns why the files can't be used; empty if they can. */
  get problem(): string {
    return this.#problem;
  }

  look(): void {
    const state = stateOf(this.#files);
    if (state === this.#seen) return;
    this.#seen = state;
    try {
      const tls = readPeerTls(this.#files);
      const { own } = this.#tls;
      if (tls.own.stamp !== own.stamp || tls.own.role !== own.role)
        throw new ConfigError(
          `${this.#files.cert} is for ${tls.own.role} of ${tls.own.stamp}, this process is ${own.role} of ${own.stamp}`,
        );
      this.#tls = tls;
      this.#problem = "";
      this.#logger.info("a renewed certificate is in use", { endsAt: new Date(tls.endsAtMs).toISOString() });
    } catch (error) {
      const problem = inWords(error);
      if (problem !== this.#problem)
        this.#logger.error("the certificate of this process can't be read again; the one before stays in use", { problem });
      this.#problem = problem;
    }
  }

  /** Looks every `everyMs`; returns what ends that. Keeps no process alive. */
  watch(everyMs: number = lookEveryMs): () => void {
    return sharedInterval(everyMs, () => this.look());
  }
}

const splitPem = (text: string): string[] =>
  text
    .split(endOfPem)
    .filter((each) => each.includes("-----BEGIN CERTIFICATE-----"))
    .map((each) => `${each}${endOfPem}`);

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(inWords(error, path));
  }
}

function within<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new ConfigError(`${path}: ${inWords(error)}`);
  }
}

const stateOf = (files: PeerFiles): string =>
  [files.cert, files.key, files.ca]
    .map((path) => {
      try {
        const { ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
        return [ino, size, mtimeNs, ctimeNs].join("/");
      } catch (error) {
        return String((error as NodeJS.ErrnoException).code);
      }
    })
    .join(" ");
