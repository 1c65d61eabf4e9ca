/**
 * Accounts of the configuration, with their keys, as `cluster.json` keeps them when the folder has a master key: AES-256-GCM under a key derived
 * from it (docs/formats/cluster-record.md). So a copy of the folder that leaves `master-key` out holds no key of an account.
 */
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { goneText, masterKeyId, masterKeysOf } from "@stamp/ports-node";
import { StartError } from "../start-error.ts";

export interface SealedAccounts {
  /** Id of the master key that sealed the accounts. */
  readonly by: string;
  /** Nonce of 12 bytes, JSON text encrypted, tag of 16 bytes; base64. */
  readonly value: string;
}

const nonceBytes = 12;
const tagBytes = 16;
const boundTo = Buffer.from("stamp cluster record accounts 1");

export const masterKeyPath = (dataDir: string): string => join(dataDir, "master-key");

/** Returns the text that changes whenever the master key of a folder is replaced, appears or goes. */
export function masterKeyStateIn(dataDir: string): string {
  const stats = statSync(masterKeyPath(dataDir), { throwIfNoEntry: false, bigint: true });
  return stats === undefined ? "" : [stats.ino, stats.size, stats.mtimeNs, stats.ctimeNs].join("/");
}

const keyFrom = (masterKey: Uint8Array): Buffer => createHmac("sha256", masterKey).update("stamp cluster record").digest();

/** Seals the value; undefined if the folder has no master key. */
export function sealAccounts(dataDir: string, accounts: unknown): SealedAccounts | undefined {
  const [masterKey] = existsSync(masterKeyPath(dataDir)) ? keysIn(dataDir) : [];
  if (masterKey === undefined) return undefined;
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", keyFrom(masterKey), nonce, { authTagLength: tagBytes }).setAAD(boundTo);
  const sealed = Buffer.concat([nonce, cipher.update(JSON.stringify(accounts)), cipher.final(), cipher.getAuthTag()]);
  return { by: masterKeyId(masterKey), value: sealed.toString("base64") };
}

/** Returns the value. Throws StartError if the master key is another one or gone; undefined if the bytes do not open. */
export function openAccounts(dataDir: string, { by, value }: SealedAccounts): unknown {
  if (!existsSync(masterKeyPath(dataDir))) throw new StartError(goneText(masterKeyPath(dataDir)));
  const masterKey = keysIn(dataDir).find((key) => masterKeyId(key) === by);
  if (masterKey === undefined)
    throw new StartError(
      `cluster.json is sealed by master key ${by}, and ${masterKeyPath(dataDir)} is another one: put that one back, or beside the newer one ` +
        "as master-key.previous (docs/guides/keys-at-rest.md)",
    );
  const bytes = Buffer.from(value, "base64");
  if (bytes.length < nonceBytes + tagBytes) return undefined;
  const end = bytes.length - tagBytes;
  const cipher = createDecipheriv("aes-256-gcm", keyFrom(masterKey), bytes.subarray(0, nonceBytes), { authTagLength: tagBytes });
  cipher.setAAD(boundTo).setAuthTag(bytes.subarray(end));
  const text = cipher.update(bytes.subarray(nonceBytes, end));
  try {
    return JSON.parse(Buffer.concat([text, cipher.final()]).toString());
  } catch {
    return undefined;
  }
}

const keysIn = (dataDir: string): readonly Uint8Array[] => masterKeysOf({ masterKeyFile: masterKeyPath(dataDir) });
