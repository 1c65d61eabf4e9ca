/**
 * Proof by a secret that all processes of a stamp know (docs/formats/bus.md, docs/guides/internal-ports.md). The secret itself never
 * travels: each side sends an HMAC over what both sides said, nonces of both included.
 *
 *   caller ── hello: nonce, port dialed, ids of its keys ──▶ server
 *   caller ◀── answer: nonce, id of the key it chose, proof of the server ── server
 *   caller ── proof of the caller ──▶ server
 *
 * Invariants:
 * - A proof counts for one handshake (both nonces), for one direction (the label), and at one port.
 * - The caller sends nothing of a call before the server has proven itself; the server decodes nothing before the caller has.
 * - Another stamp, and a location service, prove a secret that is derived from this stamp's (derived-secrets.ts). It is good for one role, at the
 *   processes that this role calls, whatever the caller says to be. That of another stamp is good for this stamp's name only.
 * - The first secret of a process is the one it prefers, the others are accepted too. The server chooses the first key of the caller's
 *   that it knows, so that processes whose secrets are changed one after another keep understanding each other.
 */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from "node:crypto";
import { type Caller, callerNumbers, callers, isCaller } from "@stamp/wire";
import {
  answerBytes,
  type Hello,
  keyIdBytes,
  keysMax,
  noBytes,
  nonceBytes,
  proofBytes,
  readAnswer,
  readHello,
  readRefusal,
  refusalFrame,
  type refusals,
  version,
  writeAnswer,
  writeHello,
} from "../bus/handshake-format.ts";
import type { Admission, CallToken, Credential, Handshake, HandshakeStep, ProofId, Proven } from "./credential.ts";
import { type DerivedRole, derivedSecrets, stampNamedBy } from "./derived-secrets.ts";

export type { ProofId } from "./credential.ts";

import { UsedTokens } from "./used-tokens.ts";

/** How long a token for one call is good, and how far clocks of two machines may be apart. */
const callTokenMs = 60_000;
export const clockSkewMs = 60_000;
export const tokenCharactersMax = 1024;
/** Longest life of a token for tools, in milliseconds: a day. */
export const toolTokenMsMax = 86_400_000;

type RandomBytes = (count: number) => Buffer;

interface Key {
  readonly id: Buffer;
  readonly bytes: Buffer;
  /** Use of a derived secret; undefined: the secret of the stamp. */
  readonly derived?: DerivedRole;
}

function keyOf(secret: string, derived?: DerivedRole): Key {
  const bytes = Buffer.from(hkdfSync("sha256", secret, "", "stamp cluster secret v1", 32));
  const id = createHmac("sha256", bytes).update("id").digest().subarray(0, keyIdBytes);
  return derived === undefined ? { bytes, id } : { bytes, id, derived };
}

/** Purposes of proofs: a proof for one can't serve as another. */
const labels = {
  server: "stamp bus v2 server\n",
  caller: "stamp bus v2 caller\n",
  token: "stamp grpc v1 token\n",
  answer: "stamp grpc v1 answer\n",
};

// A function, because the open credential below is made while this module loads.
function proofIdOf({ id }: Key): ProofId {
  return id.toString("hex");
}

function mac({ bytes }: Key, label: keyof typeof labels, ...parts: readonly (Uint8Array | string)[]): Buffer {
  const hmac = createHmac("sha256", bytes).update(labels[label]);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

const equal = (a: Uint8Array, b: Uint8Array): boolean => a.length === b.length && timingSafeEqual(a, b);

export class SecretCredential implements Credential {
  readonly open: boolean;
  /** Keys of the secrets, the preferred one first. */
  readonly #keys: readonly Key[];
  readonly #secrets: readonly string[];
  /** Stamp that the secret was made for; undefined: it was not made for another stamp. */
  readonly #stampName: string | undefined;
  readonly #nowMs: () => number;
  readonly #random: RandomBytes;
  readonly #used: UsedTokens;
  readonly accepts: readonly ProofId[];
  readonly #caller: Caller | undefined;

  /** `secrets`: the preferred one first, at most `keysMax`; none: everybody is admitted. */
  constructor(
    secrets: readonly string[],
    nowMs: () => number = Date.now,
    random: RandomBytes = randomBytes,
    used: UsedTokens = new UsedTokens(),
    caller?: Caller,
  ) {
    this.#caller = caller;
    if (secrets.length > keysMax) throw new Error(`more than ${keysMax} secrets`);
    this.open = secrets.length === 0;
    this.#keys = (this.open ? [""] : secrets).map((secret) => keyOf(secret));
    this.accepts = this.open ? [] : this.#keys.map(proofIdOf);
    this.#secrets = secrets;
    this.#stampName = stampNamedBy(secrets[0] ?? "");
    this.#nowMs = nowMs;
    this.#random = random;
    this.#used = used;
  }

  /** Returns the credential of the same process with other secrets. A token that was used before stays used. */
  withSecrets(secrets: readonly string[]): SecretCredential {
    return new SecretCredential(secrets, this.#nowMs, this.#random, this.#used, this.#caller);
  }

  /** Refuses tokens for tools with these ids from now on, also after a change of the secrets. A list that gets lost makes none good again. */
  revoke(ids: ReadonlySet<string>): void {
    const nowMs = this.#nowMs();
    this.#used.revoke(ids, nowMs, nowMs + toolTokenMsMax + clockSkewMs);
  }

  dial(port: number): Handshake {
    return new Dialing(this.#keys, port, this.#caller, this.#random, this.#stampName);
  }

  accept(ports: readonly number[]): Handshake {
    return new Accepting((name) => this.#accepted(name), ports, this.#random);
  }

  stillAccepts({ id, name }: Proven): boolean {
    if (this.open || this.accepts.includes(id)) return true;
    return [undefined, name].some((each) => this.#accepted(each).some((key) => proofIdOf(key) === id));
  }

  /** Returns the keys that this process accepts. `name`: stamp that the caller says its secret is of. */
  #accepted(name: string | undefined): readonly Key[] {
    if (this.open || this.#caller === undefined) return this.#keys;
    const caller = this.#caller;
    const derived = this.#secrets.flatMap((secret) => derivedSecrets(secret, caller, name));
    return [...this.#keys, ...derived.map(({ secret, ...use }) => keyOf(secret, use))];
  }

  tokenFor(port: number): CallToken {
    const texts = this.#keys.map((key) => this.#token(key, "call", callTokenMs, port));
    return {
      text: texts.join(","),
      provenBy: (answer) => this.#keys.some((key, at) => equal(proofOf(key, texts[at] as string), Buffer.from(answer, "base64url"))),
    };
  }

  /**
   * Returns a token that may be used again and again at every port until it ends: for tools that send the same metadata with each call. It says
   * when it was made; one that lasts longer than `toolTokenMsMax` is refused.
   */
  reusableToken(lastsMs: number): string {
    return this.#token(this.#keys[0] as Key, "tool", lastsMs, 0);
  }

  admit(given: string | undefined, ports: readonly number[]): Admission {
    if (this.open) return { kind: "admitted", answer: undefined, by: { id: "", caller: undefined } };
    if (given === undefined || given === "") return refusedCall("this port needs the secret of the stamp");
    if (given.length > tokenCharactersMax) return refusedCall("the token is too long");
    for (const text of given.split(",").slice(0, keysMax)) {
      const isOf = ({ id }: Key): boolean => text.startsWith(`stamp1.${id.toString("hex")}.`);
      const key = this.#keys.find(isOf) ?? this.#accepted(nameInToken(text)).find(isOf);
      if (key !== undefined) return this.#admitted(key, text, ports);
    }
    return refusedCall("the token was not made with the secret of this stamp");
  }

  #admitted(key: Key, text: string, ports: readonly number[]): Admission {
    const end = text.lastIndexOf(".");
    const [, , kind, expires, port, nonce, role = "", made = ""] = text.slice(0, end).split(".");
    if (!equal(mac(key, "token", text.slice(0, end)), Buffer.from(text.slice(end + 1), "base64url")))
      return refusedCall("the token is forged");
    const leftMs = Number(expires) - this.#nowMs();
    const said = isCaller(role) ? role : kind === "tool" ? "operator" : undefined;
    const by = provenBy(key, said);
    if (kind === "tool") {
      const why = this.#used.isRevoked(nonce ?? "") ? "the token was revoked" : this.#unfitTool(Number(expires), made);
      return why === undefined ? { kind: "admitted", answer: undefined, by } : refusedCall(`${why}: make a new one`);
    }
    if (leftMs <= -clockSkewMs || leftMs > callTokenMs + clockSkewMs) {
      return refusedCall(`the token is ${Math.round(Math.abs(leftMs - callTokenMs) / 1_000)} s off: do the clocks of both machines agree?`);
    }
    if (!ports.includes(Number(port))) return refusedCall(wrongPort(Number(port), ports));
    if (!this.#used.take(nonce ?? "", this.#nowMs(), Number(expires) + clockSkewMs)) return refusedCall("the token was used before");
    return { kind: "admitted", answer: proofOf(key, text).toString("base64url"), by };
  }

  /** Returns why a token for tools is not taken; undefined if it is. `made`: when it says to have been made, in milliseconds since 1970. */
  #unfitTool(expiresMs: number, made: string): string | undefined {
    const nowMs = this.#nowMs();
    if (!(expiresMs > nowMs)) return "the token has ended";
    if (!/^\d{1,15}$/.test(made)) return "the token does not say when it was made, as those of releases before";
    if (Number(made) > nowMs + clockSkewMs) return "the token was made in the future";
    return expiresMs - Number(made) > toolTokenMsMax ? "the token is for longer than a day" : undefined;
  }

  #token(key: Key, kind: "call" | "tool", lastsMs: number, port: number): string {
    const nowMs = this.#nowMs();
    const ofTool = (): string[] => [this.#caller ?? "operator", String(nowMs)];
    const said = kind === "tool" ? ofTool() : this.#caller === undefined ? [] : [this.#caller];
    const role = this.#stampName === undefined ? said : ["geo-peer", Buffer.from(this.#stampName).toString("base64url")];
    // People type the nonce of a token for tools, which is its id: it must not begin as an option does.
    const nonce = this.#random(16).toString(kind === "tool" ? "hex" : "base64url");
    const body = ["stamp1", key.id.toString("hex"), kind, nowMs + lastsMs, port, nonce, ...role].join(".");
    return `${body}.${mac(key, "token", body).toString("base64url")}`;
  }
}

/** Everybody is admitted: for a process without a secret on loopback, and for tests. */
export const openCredential: SecretCredential = new SecretCredential([]);

/** Returns an id of a secret that does not reveal it; hellos name it, too. */
export const proofIdOfSecret = (secret: string): ProofId => proofIdOf(keyOf(secret));
/** Returns the proven facts; `said`: role that the caller claims. */
const provenBy = (key: Key, said: Caller | undefined): Proven =>
  key.derived === undefined ? { id: proofIdOf(key), caller: said } : { id: proofIdOf(key), ...key.derived, isDerived: true };
/** Returns the stamp that a token names: the eighth of its nine parts. */
const nameInToken = (text: string): string | undefined => {
  const parts = text.split(".");
  return parts.length === 9 ? Buffer.from(parts[7] ?? "", "base64url").toString("latin1") : undefined;
};
const proofOf = (key: Key, token: string): Buffer => mac(key, "answer", token);
const callerOf = (role: number): Caller | undefined => callers.find((each) => callerNumbers[each] === role);
const refusedCall = (why: string): Admission => ({ kind: "refused", why: `${why} (metadata stamp-token: \`stamp token --internal\`)` });
const wrongPort = (dialed: number, ports: readonly number[]): string =>
  `it was dialed as port ${dialed} and is port ${ports.join(", ")}: if a port is forwarded, \`advertise\` names it`;

class Dialing implements Handshake {
  readonly opening: Buffer;
  readonly #keys: readonly Key[];

  constructor(keys: readonly Key[], port: number, caller: Caller | undefined, random: RandomBytes, name: string | undefined) {
    this.#keys = keys;
    const role = caller === undefined ? 0 : callerNumbers[caller];
    this.opening = writeHello({ role, port, nonce: random(nonceBytes), keyIds: keys.map(({ id }) => id), name });
  }

  received(bytes: Buffer): HandshakeStep {
    const refusedBy = readRefusal(bytes);
    if (refusedBy !== undefined) return { kind: "refused", bytes: noBytes, ...refusedBy };
    if (bytes.length < answerBytes) return { kind: "more" };
    const answer = readAnswer(bytes);
    const key = this.#keys.find(({ id }) => equal(id, answer.keyId));
    if (key === undefined || !equal(mac(key, "server", this.opening, answer.said), answer.proof)) {
      return { kind: "refused", bytes: noBytes, why: "the server does not know the secret of this stamp", unauthenticated: true };
    }
    return {
      kind: "proven",
      usedBytes: answerBytes,
      bytes: mac(key, "caller", this.opening, answer.said),
      by: { id: proofIdOf(key), caller: undefined },
    };
  }
}

class Accepting implements Handshake {
  readonly opening: Buffer = noBytes;
  readonly #keysFor: (name: string | undefined) => readonly Key[];
  readonly #ports: readonly number[];
  readonly #random: RandomBytes;
  /** Proof that the caller must give; undefined before its hello came. */
  #expected: { readonly proof: Buffer; readonly by: Proven } | undefined;

  /** `keysFor`: returns the keys that count for a caller whose hello has this name, or none. */
  constructor(keysFor: (name: string | undefined) => readonly Key[], ports: readonly number[], random: RandomBytes) {
    this.#keysFor = keysFor;
    this.#ports = ports;
    this.#random = random;
  }

  received(bytes: Buffer): HandshakeStep {
    if (this.#expected !== undefined) return this.#proof(bytes, this.#expected);
    const hello = readHello(bytes);
    switch (hello.kind) {
      case "more":
        return hello;
      case "malformed":
        return { kind: "refused", bytes: noBytes, why: "it does not begin as a connection of the bus", unauthenticated: false };
      case "version":
        return refused("version", `the caller speaks version ${hello.version} of the bus, this release ${version}`, false);
      case "hello":
        return this.#answer(bytes, hello.hello, hello.usedBytes);
    }
  }

  #answer(bytes: Buffer, hello: Hello, usedBytes: number): HandshakeStep {
    // A caller waits for the answer: what follows its hello already is nothing of ours.
    if (bytes.length > usedBytes) return refused("malformed", "bytes behind the hello", false);
    if (!this.#ports.includes(hello.port)) return refused("port", wrongPort(hello.port, this.#ports), true);
    const known = this.#keysFor(hello.name);
    const key = hello.keyIds.map((id) => known.find((each) => equal(each.id, id))).find((each) => each !== undefined);
    if (key === undefined) return refused("secret", "the caller does not know the secret of this stamp", true);
    const said = bytes.subarray(0, usedBytes);
    const answer = writeAnswer(key.id, this.#random(nonceBytes), (text) => mac(key, "server", said, text));
    const by = provenBy(key, callerOf(hello.role));
    this.#expected = { proof: mac(key, "caller", said, readAnswer(answer).said), by };
    return { kind: "send", usedBytes, bytes: answer };
  }

  #proof(bytes: Buffer, { proof, by }: { readonly proof: Buffer; readonly by: Proven }): HandshakeStep {
    if (bytes.length < proofBytes) return { kind: "more" };
    if (!equal(bytes.subarray(0, proofBytes), proof)) return refused("proof", "the caller's proof is wrong", true);
    return { kind: "proven", usedBytes: proofBytes, bytes: noBytes, by };
  }
}

const refused = (what: keyof typeof refusals, why: string, unauthenticated: boolean): HandshakeStep => ({
  kind: "refused",
  bytes: refusalFrame(what),
  why,
  unauthenticated,
});
