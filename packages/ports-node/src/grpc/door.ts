/**
 * The listening port of a process, for plain connections of the bus and for gRPC alike: the first byte tells them apart (HTTP/2 begins
 * with "PRI * HTTP/2.0").
 *
 * Strangers come here. Invariants:
 * - A plain connection is handed over when its caller has proven that it belongs to the stamp; before, at most one read of it is kept.
 * - Connections that have not proven anything are at most `unprovenMax` of each kind, and live at most `proveTimeoutMs`. The oldest one
 *   gives way to a new one: who knows the secret proves it within milliseconds and is not kept out by those who wait.
 * - An HTTP/2 connection has proven itself when a call on it was admitted (`admitted`); until then health is all it gets.
 */
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { hostAndPort } from "./address.ts";
import type { Handshake, Proven } from "./credential.ts";

export interface DoorOptions {
  readonly proveTimeoutMs: number;
  readonly unprovenMax: number;
  /** Begins the handshake of a plain connection. */
  readonly handshake: () => Handshake;
  /** Of a proven caller; `begin`: what came behind its proof; `by`: what it was made with. */
  readonly plain: (socket: Socket, begin: Buffer, by: Proven) => void;
  readonly http2: (socket: Socket) => void;
  readonly onRefused: (peer: string, why: string) => void;
}

export const peerOf = (socket: Socket): string => `${socket.remoteAddress}:${socket.remotePort}`;

export class Door {
  readonly #options: DoorOptions;
  readonly #server: Server;
  /** Connections that have not proven anything, oldest first: without a handshake, or in it. */
  readonly #unproven = new Set<Socket>();
  /** HTTP/2 connections without an admitted call, by peer, oldest first. */
  readonly #strangers = new Map<string, Socket>();

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#server = createServer({ noDelay: true }, (socket) => this.#greet(socket));
  }

  /** Resolves to the port that was bound. Throws what node throws. */
  listen(address: string): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(hostAndPort(address), () => {
        this.#server.off("error", reject);
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Takes no more connections; those that were handed over live on. */
  close(): void {
    this.#server.close();
    for (const socket of this.#unproven) socket.destroy();
  }

  /** A call of this peer was admitted: its connection stays. */
  admitted(peer: string): void {
    this.#strangers.delete(peer);
  }

  #greet(socket: Socket): void {
    const { proveTimeoutMs, unprovenMax, onRefused } = this.#options;
    const peer = peerOf(socket);
    if (this.#unproven.size >= unprovenMax) {
      const [oldest] = this.#unproven as Set<Socket | undefined>;
      if (oldest !== undefined) {
        this.#unproven.delete(oldest);
        oldest.destroy();
      }
    }
    const drop = (): void => void socket.destroy();
    const timer = setTimeout(() => {
      onRefused(peer, `it proved nothing within ${proveTimeoutMs} ms`);
      drop();
    }, proveTimeoutMs);
    const known = (): void => {
      clearTimeout(timer);
      this.#unproven.delete(socket);
      socket.off("readable", look).off("error", drop).off("close", known);
    };
    let begin: Buffer = Buffer.alloc(0);
    let handshake: Handshake | undefined;
    const look = (): void => {
      const chunk = socket.read() as Buffer | null;
      if (chunk === null) return;
      begin = begin.length === 0 ? chunk : Buffer.concat([begin, chunk]);
      if (handshake === undefined && begin[0] === 0x50) {
        known();
        this.#http2(socket, peer, begin);
        return;
      }
      handshake ??= this.#options.handshake();
      const step = handshake.received(begin);
      if (step.kind === "more") return;
      if (step.kind === "refused") {
        onRefused(peer, step.why);
        // It learns why, and has no time to answer.
        socket.off("readable", look);
        socket.end(step.bytes, drop);
        return;
      }
      begin = begin.subarray(step.usedBytes);
      if (step.bytes.length > 0) socket.write(step.bytes);
      if (step.kind !== "proven") return;
      known();
      this.#options.plain(socket, begin, step.by);
    };
    this.#unproven.add(socket);
    socket.on("error", drop).on("close", known).on("readable", look);
  }

  #http2(socket: Socket, peer: string, begin: Buffer): void {
    if (this.#strangers.size >= this.#options.unprovenMax) {
      const [[name, oldest] = []] = this.#strangers;
      if (name !== undefined) this.#strangers.delete(name);
      oldest?.destroy();
    }
    this.#strangers.set(peer, socket);
    socket.once("close", () => {
      if (this.#strangers.get(peer) === socket) this.#strangers.delete(peer);
    });
    socket.unshift(begin);
    this.#options.http2(socket);
  }
}
