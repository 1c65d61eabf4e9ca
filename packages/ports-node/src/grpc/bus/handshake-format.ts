/**
 * Bytes of the handshake of a plain connection (docs/formats/bus.md, version 2), integers little-endian:
 *
 *     hello of the caller   | "SBUS" | version u8 = 2 | role u8 | port u16 | nonce 32 | key id 8 | key id 8, or zeros |      56 bytes
 *     hello with a name     the same with version 3, then | name 64, zeros behind it |                                      120 bytes
 *     answer of the server  | "SBUS" | version u8 = 2 | 0 | 0 0 | nonce 32 | key id 8 | proof 32 |                     80 bytes
 *     proof of the caller   | proof 32 |
 *     refusal               | "SBUS" | version u8 = 2 | why u8 | 0 0 |, and the connection ends                         8 bytes
 */
import { busVersion } from "@stamp/wire";

export const version = busVersion;
export const handshakeMagic: Buffer = Buffer.from("SBUS");
export const nonceBytes = 32;
export const keyIdBytes = 8;
export const proofBytes = 32;
/** Secrets that a process knows at a time. */
export const keysMax = 2;
const headBytes = 8;
/** Version of a hello that says the name of the stamp whose secret the caller proves. Everything else is as in version 2. */
const namedVersion = 3;
export const nameBytesMax = 64;
export const helloBytes: number = headBytes + nonceBytes + keysMax * keyIdBytes;
/** Length of the server's answer that its proof covers, in bytes. */
const saidBytes = headBytes + nonceBytes + keyIdBytes;
export const answerBytes: number = saidBytes + proofBytes;
export const noBytes: Buffer = Buffer.alloc(0);

/** Reason why a connection is refused. */
export const refusals = { malformed: 1, version: 2, secret: 3, proof: 4, port: 5 } as const;

const words: Readonly<Record<number, { readonly why: string; readonly unauthenticated: boolean }>> = {
  [refusals.malformed]: { why: "the server took the hello for malformed", unauthenticated: false },
  [refusals.version]: { why: `the server does not speak version ${version} of the bus: it is of another release`, unauthenticated: false },
  [refusals.secret]: {
    why: "the server does not know the secret of this process, or this process has none (clusterSecretFile)",
    unauthenticated: true,
  },
  [refusals.proof]: { why: "the server refused the proof of this process", unauthenticated: true },
  [refusals.port]: { why: "the server is reached at another port than this one: its `advertise` must name it", unauthenticated: true },
};

export interface Hello {
  /** Number of the role that the caller claims; 0: none. */
  readonly role: number;
  /** Port that the caller dialed. */
  readonly port: number;
  readonly nonce: Buffer;
  /** Ids of the keys that the caller knows, the preferred one first. */
  readonly keyIds: readonly Buffer[];
  /** Name of the stamp that the caller's secret was made for, in ASCII; undefined: the secret was made for no other stamp. */
  readonly name?: string | undefined;
}

function head(third: number, of: number = version): Buffer {
  const bytes = Buffer.alloc(headBytes);
  handshakeMagic.copy(bytes);
  bytes[4] = of;
  bytes[5] = third;
  return bytes;
}

export function writeHello({ role, port, nonce, keyIds, name }: Hello): Buffer {
  const begin = head(role, name === undefined ? version : namedVersion);
  begin.writeUInt16LE(port, 6);
  const ids = Buffer.alloc(keysMax * keyIdBytes);
  keyIds.forEach((id, at) => {
    id.copy(ids, at * keyIdBytes);
  });
  const named = Buffer.alloc(name === undefined ? 0 : nameBytesMax);
  named.write(name ?? "", "latin1");
  return Buffer.concat([begin, nonce, ids, named]);
}

export type ReadHello =
  | { readonly kind: "more" }
  | { readonly kind: "malformed" }
  /** Hello of another version, which its first eight bytes tell. */
  | { readonly kind: "version"; readonly version: number }
  | { readonly kind: "hello"; readonly hello: Hello; readonly usedBytes: number };

export function readHello(bytes: Buffer): ReadHello {
  const there = Math.min(bytes.length, handshakeMagic.length);
  if (handshakeMagic.compare(bytes, 0, there, 0, there) !== 0) return { kind: "malformed" };
  if (bytes.length < headBytes) return { kind: "more" };
  const isNamed = bytes[4] === namedVersion;
  if (bytes[4] !== version && !isNamed) return { kind: "version", version: bytes[4] as number };
  const usedBytes = helloBytes + (isNamed ? nameBytesMax : 0);
  if (bytes.length < usedBytes) return { kind: "more" };
  const keyIds = Array.from({ length: keysMax }, (_, at) => {
    const from = headBytes + nonceBytes + at * keyIdBytes;
    return bytes.subarray(from, from + keyIdBytes);
  });
  const name = isNamed ? bytes.toString("latin1", helloBytes, usedBytes).replace(/\0+$/, "") : undefined;
  const nonce = bytes.subarray(headBytes, headBytes + nonceBytes);
  return { kind: "hello", usedBytes, hello: { role: bytes[5] as number, port: bytes.readUInt16LE(6), nonce, keyIds, name } };
}

export function writeAnswer(keyId: Buffer, nonce: Buffer, prove: (said: Buffer) => Buffer): Buffer {
  const said = Buffer.concat([head(0), nonce, keyId]);
  return Buffer.concat([said, prove(said)]);
}

export interface HandshakeAnswer {
  readonly keyId: Buffer;
  readonly said: Buffer;
  readonly proof: Buffer;
}

/** Reads an answer from at least `answerBytes`. */
export const readAnswer = (bytes: Buffer): HandshakeAnswer => ({
  keyId: bytes.subarray(saidBytes - keyIdBytes, saidBytes),
  said: bytes.subarray(0, saidBytes),
  proof: bytes.subarray(saidBytes, answerBytes),
});

export const refusalFrame = (why: keyof typeof refusals): Buffer => head(refusals[why]);

/** Returns why an answer is none, in words; undefined while it may be one. */
export function readRefusal(bytes: Buffer): { readonly why: string; readonly unauthenticated: boolean } | undefined {
  const there = Math.min(bytes.length, handshakeMagic.length);
  if (handshakeMagic.compare(bytes, 0, there, 0, there) !== 0)
    return { why: "what answers is no server of the bus", unauthenticated: false };
  if (bytes.length < headBytes) return undefined;
  if (bytes[4] !== version)
    return { why: `the server speaks version ${bytes[4]} of the bus, this release ${version}`, unauthenticated: false };
  const reason = bytes[5] as number;
  return reason === 0 ? undefined : (words[reason] ?? { why: `the server refused it (${reason})`, unauthenticated: false });
}
