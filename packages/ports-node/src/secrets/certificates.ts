/**
 * The certificate and key of an HTTPS door, from files that are looked at again: a renewed pair is in use within `checkEveryMs`, without
 * a restart and without ending a connection. A pair that can't be used is logged and the one before stays.
 */
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { FailureError } from "@stamp/base";
import type { Logger } from "@stamp/ports";
import { inWords } from "../process/in-words.ts";

export interface TlsFiles {
  /** PEM file: the door's own certificate first, then those up to the root. */
  readonly certificatePath: string;
  readonly keyPath: string;
}

export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

const checkEveryMs = 5_000;

/** Throws FailureError when the pair can't be used. */
export function readPair({ certificatePath, keyPath }: TlsFiles): CertificatePair {
  try {
    const pair = { cert: readFileSync(certificatePath), key: readFileSync(keyPath) };
    createSecureContext(pair);
    return pair;
  } catch (error) {
    throw new FailureError({
      code: "invalidArgument",
      reason: "badRequest",
      message: `the certificate ${certificatePath} with the key ${keyPath} can't be used: ${inWords(error)}`,
      applied: "no",
    });
  }
}

/** Returns when the door's own certificate ends, in milliseconds since 1970. */
export const certificateEndMs = ({ cert }: CertificatePair): number => Date.parse(new X509Certificate(cert).validTo);

function stampOf({ certificatePath, keyPath }: TlsFiles): string {
  return [certificatePath, keyPath]
    .map((path) => {
      const { mtimeMs, ino, size } = statSync(path);
      return `${mtimeMs}/${ino}/${size}`;
    })
    .join();
}

/**
 * Calls `renewed` for every pair that comes after the first: with the pair, or with undefined if it can't be used. Returns
 * how to end that. Keeps no process alive.
 */
export function watchPair(
  files: TlsFiles,
  renewed: (pair: CertificatePair | undefined) => void,
  logger: Logger,
  everyMs: number = checkEveryMs,
): () => void {
  let seen = stampOf(files);
  const timer = setInterval(() => {
    try {
      const now = stampOf(files);
      if (now === seen) return;
      seen = now;
      renewed(readPair(files));
      logger.info("a renewed certificate is in use", { certificate: files.certificatePath });
    } catch (error) {
      renewed(undefined);
      logger.error("a renewed certificate can't be used, the one before stays", { certificate: files.certificatePath, error });
    }
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}
