/** Where etcd is, what a stamp keeps in it, and the limits of requests to it. */
import { concatBytes, fromUtf8, utf8 } from "@stamp/base";
import type { Address, ForeignTls } from "@stamp/ports";

export interface EtcdOptions {
  /** Members, host:port; at least one. */
  readonly endpoints: readonly Address[];
  readonly tls?: ForeignTls | undefined;
  /** Name and password for etcd; undefined: etcd asks for no user. */
  readonly user?: { readonly name: string; readonly password: string } | undefined;
  /** Prefix of every key of the stamp. Two stamps in one etcd have different ones. */
  readonly prefix: string;
}

/**
 * Most operations in one transaction, and most bytes of a request, that every member takes unless its operator lowers them
 * (`--max-txn-ops` 128, `--max-request-bytes` 1.5 MiB). Some bytes are left for the frame of the request.
 */
export const etcdLimits = { operationsMax: 128, requestBytesMax: 1_500_000 } as const;

/** Longest time of one attempt, in milliseconds; then the next member is asked. */
export const attemptTimeoutMs = 1_000;

/** Names of the keys below the prefix. */
export class EtcdKeys {
  /** Value: the active lock service, as JSON. Bound to the etcd lease of that process. */
  readonly active: Uint8Array;
  /** Value: election and number of the last batch, as text. */
  readonly batch: Uint8Array;
  /** Prefix of the keys of the beats (beats.ts), and the key behind all of them. */
  readonly beats: Uint8Array;
  readonly beatsEnd: Uint8Array;
  /** Prefix of the keys of the store. */
  readonly data: Uint8Array;

  constructor(prefix: string) {
    this.active = utf8(`${prefix}active`);
    this.batch = utf8(`${prefix}batch`);
    this.beats = utf8(`${prefix}beats/`);
    this.beatsEnd = utf8(`${prefix}beats0`);
    this.data = utf8(`${prefix}d/`);
  }

  /** Returns the key in etcd of a key of the store. */
  stored(key: Uint8Array): Uint8Array {
    return concatBytes([this.data, key]);
  }

  /** Returns the key of an attempt's beat. Its value is JSON: number of the beat, and the time for which its process answers without another one. */
  beat(attempt: string): Uint8Array {
    return concatBytes([this.beats, utf8(attempt)]);
  }
}

/** Process that is elected, as the others see it. */
export interface Candidate {
  readonly name: string;
  /** Address at which clients call the lock service. */
  readonly address: Address;
  /** Random name of this attempt to be elected. */
  readonly attempt: string;
}

export const encodeCandidate = (candidate: Candidate): Uint8Array => utf8(JSON.stringify(candidate));

/** Returns undefined if the value is none of ours. */
export function decodeCandidate(bytes: Uint8Array): Candidate | undefined {
  try {
    const { name, address, attempt } = JSON.parse(fromUtf8(bytes)) as Partial<Candidate>;
    return typeof name === "string" && typeof address === "string" && typeof attempt === "string" ? { name, address, attempt } : undefined;
  } catch {
    return undefined;
  }
}
