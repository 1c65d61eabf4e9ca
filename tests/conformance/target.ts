/** What the conformance suite runs against: an endpoint, an account, and the real SDK on it. */
import assert from "node:assert/strict";
import { createHmac, randomUUID } from "node:crypto";
import {
  type BlobClient,
  BlobSASPermissions,
  BlobServiceClient,
  type ContainerClient,
  type RestError,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { fromBase64, type ServiceName, signRequest } from "@stamp/azure-rest";
import type { TestIssuer } from "./issuer.ts";

export interface BlobSettings {
  readonly versioning?: boolean;
  readonly containerDeleteRetentionDays?: number;
  readonly allowPublicAccess?: boolean;
}

export interface ConformanceTarget {
  /** Without the account: http://127.0.0.1:10000 */
  readonly endpoint: string;
  readonly accountName: string;
  /** Base64. */
  readonly accountKey: string;
  /** Whose bearer tokens it takes. */
  readonly issuer?: TestIssuer;
  /** What the operator of the account switches on. */
  readonly setBlobSettings?: (settings: BlobSettings) => Promise<void>;
  readonly scopes?: ScopeControl;
  stop(): Promise<void>;
}

/** Encryption scopes of the account, as its operator has them. What was asked for is in force when it resolves. */
export interface ScopeControl {
  create(name: string): Promise<void>;
  setDisabled(name: string, disabled: boolean): Promise<void>;
}

export class Clients {
  readonly target: ConformanceTarget;
  /** Whose way of signing `raw` uses. */
  readonly signing: ServiceName = "blob";
  readonly service: BlobServiceClient;

  constructor(target: ConformanceTarget) {
    this.target = target;
    this.service = this.serviceWith(target.accountKey);
  }

  serviceWith(key: string): BlobServiceClient {
    const { endpoint, accountName } = this.target;
    const credential = new StorageSharedKeyCredential(accountName, key);
    return new BlobServiceClient(`${endpoint}/${accountName}`, credential, { retryOptions: { maxTries: 1 } });
  }

  /** A fresh container. */
  async container(options: Parameters<ContainerClient["create"]>[0] = {}): Promise<ContainerClient> {
    const client = this.service.getContainerClient(`c-${randomUUID()}`);
    await client.create(options);
    return client;
  }

  /** A request as given, signed rightly unless it says otherwise. `path` begins behind the account. */
  async raw(
    method: string,
    path: string,
    options: { headers?: Record<string, string>; body?: string | Uint8Array; stream?: ReadableStream; sign?: boolean } = {},
  ) {
    const { endpoint, accountName, accountKey } = this.target;
    const target = `/${accountName}${path}`;
    // As bytes: to a text, fetch would add a content type that nobody signed.
    const body = typeof options.body === "string" ? Buffer.from(options.body) : options.body;
    const length = body === undefined ? {} : { "content-length": String(body.length) };
    const given = { ...length, ...options.headers };
    const key = fromBase64(accountKey) as Uint8Array;
    const headers =
      options.sign === false
        ? given
        : signRequest({ service: this.signing, method, target, headers: given }, accountName, key, Date.now(), (k, m) =>
            createHmac("sha256", k).update(m).digest(),
          );
    if (options.stream) return fetch(`${endpoint}${target}`, { method, headers, body: options.stream, duplex: "half" } as RequestInit);
    return fetch(`${endpoint}${target}`, { method, headers, ...(body === undefined ? {} : { body: body as never }) });
  }
}

/** URL of a blob with a SAS that reads it: what a request that copies at once needs, also within one account. */
export const readableUrl = (blob: BlobClient, permissions = "r"): Promise<string> =>
  blob.generateSasUrl({ permissions: BlobSASPermissions.parse(permissions), expiresOn: new Date(Date.now() + 3_600_000) });

/** The SDK's error of what must fail; fails the test when it does not. */
export async function failure(work: Promise<unknown>): Promise<RestError> {
  try {
    await work;
  } catch (error) {
    return error as RestError;
  }
  throw new Error("it should have failed");
}

/** Bytes that differ everywhere, the same for one seed. */
export function bytes(lengthBytes: number, seed = 1): Buffer {
  const buffer = Buffer.alloc(lengthBytes);
  let state = (seed * 2654435761) >>> 0;
  for (let i = 0; i < lengthBytes; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    buffer[i] = state >>> 24;
  }
  return buffer;
}

/** Fails without a comparison byte by byte, which takes minutes for large contents that differ. */
export function sameBytes(actual: Buffer, expected: Buffer, what = "the same bytes"): void {
  assert.ok(actual.equals(expected), `${what}: ${actual.length} bytes, expected ${expected.length}`);
}

export const blockId = (number: number): string => Buffer.from(`block-${String(number).padStart(6, "0")}`).toString("base64");
