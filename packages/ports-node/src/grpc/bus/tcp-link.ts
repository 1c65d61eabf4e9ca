/**
 * Bus frames over a plain connection (docs/formats/bus.md): what is sent goes to the kernel from where it lies, what is received is read to where
 * it stays. The listening side has one port for this and for gRPC (`door.ts`).
 *
 * Both sides send a sign of life when they had nothing else to send, and give the connection up when they read and hear nothing. Nobody
 * gives up while it does not read itself.
 */
import { Socket, type SocketConstructorOpts } from "node:net";
import { type ConnectionOptions, connect as connectTls, TLSSocket } from "node:tls";
import { assert } from "@stamp/base";
import { inWords } from "../../process/in-words.ts";
import { sharedInterval } from "../../time/shared-interval.ts";
import { hostAndPort } from "../address.ts";
import type { Credential, Handshake, ProofId } from "../credentials/credential.ts";
import { dialOptions, type PeerTls } from "../credentials/peer-tls.ts";
import { type GrpcLimits, receiveBytesMax } from "../options.ts";
import { FrameAssembler, headBytes, kinds, writeHead } from "./frame-assembler.ts";
import type { FrameLink, LinkEvents } from "./frame-link.ts";
import type { FrameMemory } from "./frame-memory.ts";

const alive: Buffer = Buffer.alloc(headBytes);
writeHead(alive, 0, kinds.alive);
const closedByPeer = "the peer closed it";

interface ReadInto {
  readonly buffer: () => Uint8Array;
  readonly callback: (countBytes: number) => boolean;
}

export class TcpLink implements FrameLink {
  readonly headBytes = headBytes;
  /** Length from which on bytes get a vector of their own; below, copying is cheaper. */
  readonly referencedFromBytes: number = 16 * 1024;
  readonly #events: LinkEvents;
  readonly #assembler: FrameAssembler;
  readonly #limits: GrpcLimits;
  #socket: Socket | undefined;
  #endLooks: (() => void) | undefined;
  /** True before the first look, which comes earlier than one interval after the link was made. */
  #isNew = true;
  #paused = false;
  /** Came before the pause was noticed: what one read brought. */
  #held: Buffer[] = [];
  #ended = false;
  /** True if something was sent since the last look. */
  #sent = false;
  #heard = false;
  #silentMs = 0;
  /** Handshake in progress; undefined once it is over. */
  #handshake: Handshake | undefined;
  /** Credential that a caller would use now; undefined at the side that is called. */
  readonly #credential: (() => Credential) | undefined;
  #tls: (() => PeerTls) | undefined;
  /** Certificates that a caller has shown; undefined without TLS, and at the side that is called. */
  #shown: PeerTls | undefined;
  /** Id of the secret by which the peer proved itself. */
  #provenBy: ProofId | undefined;

  private constructor(limits: GrpcLimits, memory: FrameMemory, events: LinkEvents, handshake?: Handshake, credential?: () => Credential) {
    this.#limits = limits;
    this.#events = events;
    this.#handshake = handshake;
    this.#credential = credential;
    this.#assembler = new FrameAssembler(receiveBytesMax(limits), handshake === undefined, memory, {
      handshake: (bytes) => this.#shake(bytes),
      frame: (bytes) => {
        if (this.#paused || this.#held.length > 0) this.#held.push(bytes);
        else if (!this.#ended) this.#events.frame(bytes);
      },
    });
  }

  /** Dials a server; `tls`: undefined without TLS. Frames lie in `memory`. */
  static dial(
    address: string,
    limits: GrpcLimits,
    credential: () => Credential,
    tls: (() => PeerTls) | undefined,
    memory: FrameMemory,
    events: LinkEvents,
  ): TcpLink {
    const { host, port } = hostAndPort(address);
    let handshake: Handshake | undefined;
    let wrong: unknown;
    try {
      handshake = credential().dial(port);
    } catch (error) {
      wrong = error;
    }
    const link = new TcpLink(limits, memory, events, handshake, credential);
    link.#tls = tls;
    link.#shown = tls?.();
    const socket =
      link.#shown === undefined || handshake === undefined
        ? new Socket({ onread: link.#readInto() })
        : connectTls({ ...dialOptions(link.#shown), host, port, onread: link.#readInto() } as ConnectionOptions);
    link.#use(socket);
    if (handshake === undefined) {
      socket.destroy(wrong as Error);
      return link;
    }
    socket.setNoDelay(true);
    try {
      if (link.#shown === undefined) socket.connect({ host, port });
    } catch (error) {
      socket.destroy(error as Error);
    }
    socket.write(handshake.opening);
    return link;
  }

  /** Makes the link of a connection whose handshake is over; `begin` was read behind it. Frames are in `memory`. */
  static accepted(socket: Socket, begin: Buffer, limits: GrpcLimits, memory: FrameMemory, events: LinkEvents): TcpLink {
    const link = new TcpLink(limits, memory, events);
    // Before the socket asks where its next bytes belong; whoever takes frames is there one turn later.
    link.#paused = true;
    link.#copyIn(begin);
    link.#paused = false;
    process.nextTick(() => link.#release());
    link.#use(link.#takeOver(socket));
    return link;
  }

  get stale(): boolean {
    if (this.#shown !== undefined && this.#shown !== this.#tls?.()) return true;
    return this.#provenBy !== undefined && !isPreferred(this.#credential, this.#provenBy);
  }

  write(parts: readonly Buffer[], written: (error?: Error | null) => void): void {
    const socket = this.#socket as Socket;
    const first = parts[0] as Buffer;
    let lengthBytes = -headBytes;
    for (const part of parts) lengthBytes += part.length;
    writeHead(first, lengthBytes, kinds.frames);
    this.#sent = true;
    if (parts.length === 1) {
      socket.write(first, written);
      return;
    }
    socket.cork();
    for (let i = 0; i < parts.length - 1; i++) socket.write(parts[i] as Buffer);
    socket.write(parts[parts.length - 1] as Buffer, written);
    socket.uncork();
  }

  pause(): void {
    this.#paused = true;
    this.#socket?.pause();
  }

  resume(): void {
    this.#paused = false;
    if (this.#held.length > 0) process.nextTick(() => this.#release());
    else this.#socket?.resume();
  }

  end(): void {
    this.#socket?.end();
  }

  destroy(): void {
    this.#ended = true;
    this.#held = [];
    this.#endLooks?.();
    this.#socket?.destroy();
  }

  #use(socket: Socket): void {
    this.#socket = socket;
    let why = closedByPeer;
    let unauthenticated = false;
    let nobody = false;
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // With TLS 1.3 a server refuses a certificate after the caller's side of the handshake is over.
      unauthenticated = this.#handshake !== undefined && this.#shown !== undefined && error.syscall === undefined;
      nobody = error.code === "ECONNREFUSED" || error.code === "ENOTFOUND";
      why = unauthenticated ? `TLS: ${inWords(error)}` : inWords(error);
    });
    socket.on("close", () => {
      const early = this.#handshake !== undefined ? " before it answered the hello: it may be of an older release, or have no TLS" : "";
      this.#close(why === closedByPeer ? why + early : why, unauthenticated, nobody);
    });
    this.#endLooks = sharedInterval(this.#limits.keepAliveEveryMs, () => this.#look());
  }

  #release(): void {
    while (this.#held.length > 0 && !this.#paused && !this.#ended) this.#events.frame(this.#held.shift() as Buffer);
    if (!this.#paused) this.#socket?.resume();
  }

  #close(why: string, unauthenticated = false, nobody = false): void {
    this.destroy();
    this.#events.closed(why, unauthenticated, nobody);
  }

  /** Goes on with the caller's handshake. Returns the number of bytes used when it is over. */
  #shake(bytes: Buffer): number | undefined {
    const step = (this.#handshake as Handshake).received(bytes);
    if (step.kind === "more") return undefined;
    if (step.kind === "refused") {
      this.#close(step.why, step.unauthenticated);
      return undefined;
    }
    assert(step.kind === "proven", "a caller's handshake has one step");
    this.#handshake = undefined;
    this.#provenBy = step.by.id;
    this.#socket?.write(step.bytes);
    this.#events.open();
    return step.usedBytes;
  }

  #readInto(): ReadInto {
    return {
      buffer: () => this.#assembler.space(),
      callback: (countBytes) => {
        this.#received(countBytes);
        return true;
      },
    };
  }

  /**
   * net.Socket reads into memory of ours only when it is told so as it is made, and a listening server makes its own. So the connection moves
   * to a new one. Where node's internals are not as known, what was read is copied instead: slower, never wrong.
   */
  #takeOver(socket: Socket): Socket {
    if (socket instanceof TLSSocket) {
      // Its handle is that of the TLS engine, which belongs to this socket.
      socket.on("data", (chunk: Buffer) => this.#copyIn(chunk));
      return socket;
    }
    const handle = Reflect.get(socket, "_handle") as { useUserBuffer?: unknown } | null;
    if (typeof handle?.useUserBuffer !== "function") {
      socket.on("data", (chunk: Buffer) => this.#copyIn(chunk));
      return socket;
    }
    Reflect.set(socket, "_handle", null);
    const taken = new Socket({ handle, onread: this.#readInto() } as unknown as SocketConstructorOpts);
    socket.destroy();
    return taken;
  }

  #copyIn(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.#ended; ) {
      const count = chunk.copy(this.#assembler.space(), 0, at);
      at += count;
      this.#received(count);
    }
  }

  #received(countBytes: number): void {
    this.#heard = true;
    if (this.#ended) return;
    try {
      this.#assembler.received(countBytes);
    } catch (error) {
      this.#ended = true;
      if (this.#socket === undefined) process.nextTick(() => this.#close(String(error)));
      else this.#close(String(error));
    }
  }

  #look(): void {
    const { keepAliveEveryMs, keepAliveTimeoutMs } = this.#limits;
    if (this.#handshake === undefined && !this.#sent && this.#socket?.writable && this.#socket.writableLength === 0)
      this.#socket.write(alive);
    this.#sent = false;
    this.#silentMs = this.#heard || this.#paused || this.#isNew ? 0 : this.#silentMs + keepAliveEveryMs;
    this.#heard = false;
    this.#isNew = false;
    if (this.#silentMs >= keepAliveEveryMs + keepAliveTimeoutMs) this.#close(`nothing came for ${this.#silentMs} ms`);
  }
}

/** True also while the credential can't be read: a connection that stands is worth more than one that can't be made. */
function isPreferred(credential: (() => Credential) | undefined, by: ProofId): boolean {
  try {
    const [preferred = by] = credential?.().accepts ?? [];
    return preferred === by;
  } catch {
    return true;
  }
}
