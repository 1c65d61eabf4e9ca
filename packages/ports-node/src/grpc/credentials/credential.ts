/**
 * Proofs of one process of a stamp to another before either of them takes anything from it. The transport knows only these interfaces:
 * a secret of the stamp stands behind them today (`secret-credential.ts`), an identity of TLS can take its place.
 *
 *   connection of the bus     `dial` and `accept`: each side proves itself before the first frame (docs/formats/bus.md)
 *   call over ordinary gRPC   `tokenFor` in the metadata of the call, `admit` before its message is read
 */

import type { Caller } from "@stamp/wire";

/** Names what a proof was made with, without telling it: the id of the secret's key, in hex. Empty where nothing is proven. */
export type ProofId = string;

/** Facts about the peer after its proof. */
export interface Proven {
  readonly id: ProofId;
  /** Role of the caller. With a secret, the role that it says to have. Undefined if it says none: no secret, a tool, or a release before roles. */
  readonly caller: Caller | undefined;
  /** True: it proved a secret that is derived from the stamp's for another stamp or a location service, and is good for `caller` only. */
  readonly isDerived?: boolean;
  /** Name that the certificate or derived secret proves; undefined: neither does. */
  readonly name?: string | undefined;
}

/**
 * Step of a side of a handshake with the bytes that it has. `usedBytes` of them are taken; the rest belongs to the next
 * step.
 */
export type HandshakeStep =
  | { readonly kind: "more" }
  | { readonly kind: "send"; readonly usedBytes: number; readonly bytes: Buffer }
  /** Both sides have proven themselves as far as this side can know; `bytes` go out before anything else. */
  | { readonly kind: "proven"; readonly usedBytes: number; readonly bytes: Buffer; readonly by: Proven }
  /** The connection ends; `bytes` tell the other side why. */
  | { readonly kind: "refused"; readonly bytes: Buffer; readonly why: string; readonly unauthenticated: boolean };

/** One side of the handshake of one connection: bytes in, steps out, without I/O. */
export interface Handshake {
  /** The caller's first bytes; empty at the side that is called. */
  readonly opening: Buffer;
  /** Takes everything received and not taken yet. */
  received(bytes: Buffer): HandshakeStep;
}

/** A token for one call, and how its caller recognizes the answer of a server that knows the same secret. */
export interface CallToken {
  readonly text: string;
  provenBy(answer: string): boolean;
}

export type Admission =
  /** `answer` proves this server to a caller that sent a token for one call; undefined for a reusable token. */
  | { readonly kind: "admitted"; readonly answer: string | undefined; readonly by: Proven }
  | { readonly kind: "refused"; readonly why: string };

export interface Credential {
  /** True if there is no secret: everybody is admitted, and proofs mean nothing. */
  readonly open: boolean;
  /** Ids of the secrets that this process accepts, its own first; empty: there is no secret. */
  readonly accepts: readonly ProofId[];
  /** True while what was proven is accepted still. */
  stillAccepts(by: Proven): boolean;
  /** Begins the caller's handshake; `port`: port that is dialed. */
  dial(port: number): Handshake;
  /** Begins the server's handshake; `ports`: ports at which callers reach this process. */
  accept(ports: readonly number[]): Handshake;
  tokenFor(port: number): CallToken;
  /** Judges a call by `token`, as its metadata has it. */
  admit(token: string | undefined, ports: readonly number[]): Admission;
}

/** Metadata of a call over ordinary gRPC. */
export const tokenKey = "stamp-token";
/** Key of the metadata with the server's proof, which comes before anything else of the answer. */
export const proofKey = "stamp-proof";
