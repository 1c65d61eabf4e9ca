/**
 * The listening port of a process, for plain connections of the bus and for gRPC alike: the first byte tells them apart (HTTP/2 begins
 * with "PRI * HTTP/2.0").
 *
 * Strangers come here. Invariants:
 * - A plain connection is handed over when its caller has proven that it belongs to the stamp; before, at most one read of it is kept.
 * - Connections that have not proven anything are at most `unprovenMax` of each kind, and live at most `proveTimeoutMs`. The oldest one
 *   gives way to a new one: who knows the secret proves it within milliseconds and is not kept out by those who wait.
 * - With TLS, nothing is read before the caller has shown a certificate of this stamp. A connection in that handshake is one of the unproven.
 * - An HTTP/2 connection has proven itself when a call on it was admitted (`admitted`); until then health is all it gets.
 */
import { constants } from "node:crypto";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { createServer as createTlsServer, type TLSSocket, type Server as TlsServer } from "node:tls";
import { inWords } from "../process/in-words.ts";
import { hostAndPort } from "./address.ts";
import type { Handshake, Proven } from "./credentials/credential.ts";
import { callerBehind, minVersion, type PeerName, type PeerTls, provenTwice } from "./credentials/peer-tls.ts";

export interface DoorOptions {
  readonly proveTimeoutMs: number;
  readonly unprovenMax: number;
  readonly tls: (() => PeerTls) | undefined;
  /** Begins the handshake of a plain connection. */
  readonly handshake: () => Handshake;
  /** Takes the connection of a proven caller; `begin`: bytes that came behind its proof; `by`: its proof. */
  readonly plain: (socket: Socket, begin: Buffer, by: Proven) => void;
  readonly http2: (socket: Socket) => void;
  readonly onRefused: (peer: string, why: string) => void;
}

/** No session is resumed: every connection shows a certificate that is valid now. */
const secureOptions = constants.SSL_OP_NO_TICKET;

export const peerOf = (socket: Socket): string => `${socket.remoteAddress}:${socket.remotePort}`;

export class Door {
  readonly #options: DoorOptions;
  readonly #server: Server;
  /** Takes the TLS off; listens nowhere itself. */
  readonly #tls: TlsServer | undefined;
  #tlsNow: PeerTls | undefined;
  /** Functions that end the time for a TLS handshake, by peer. */
  readonly #shaking = new Map<string, () => void>();
  /** Names that certificates prove, by peer. */
  readonly #callers = new Map<string, PeerName>();
  /** Connections that have not proven anything, oldest first: without a handshake, or in it. */
  readonly #unproven = new Set<Socket>();
  /** HTTP/2 connections without an admitted call, by peer, oldest first. */
  readonly #strangers = new Map<string, Socket>();

  constructor(options: DoorOptions) {
    this.#options = options;
    this.#tls = options.tls === undefined ? undefined : this.#makeTls(options.tls());
    const greet = this.#tls === undefined ? (socket: Socket) => this.#greet(socket) : (socket: Socket) => this.#shake(socket);
    this.#server = createServer({ noDelay: true }, greet);
  }

  /** Returns the role and name that the certificate of the peer's connection proves; undefined without TLS, `gone` if that connection has ended. */
  callerAt(peer: string): PeerName | "gone" | undefined {
    return this.#tls === undefined ? undefined : (this.#callers.get(peer) ?? "gone");
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

  /** Notes that a call of this peer was admitted: its connection stays. */
  admitted(peer: string): void {
    this.#strangers.delete(peer);
  }

  #makeTls(tls: PeerTls): TlsServer {
    this.#tlsNow = tls;
    const server = createTlsServer({
      ...tls.pem,
      requestCert: true,
      rejectUnauthorized: true,
      minVersion,
      secureOptions,
      ALPNProtocols: ["h2"],
    });
    server.on("secureConnection", (socket) => this.#shook(socket));
    server.on("tlsClientError", (error, socket) => {
      this.#options.onRefused(peerOf(socket), `TLS: ${inWords(error)}`);
      socket.destroy();
    });
    return server;
  }

  /** Begins the TLS handshake of a connection. */
  #shake(socket: Socket): void {
    const { proveTimeoutMs, onRefused, tls } = this.#options;
    const [server, now] = [this.#tls as TlsServer, tls?.()];
    if (now !== undefined && now !== this.#tlsNow) {
      this.#tlsNow = now;
      server.setSecureContext({ ...now.pem, minVersion, secureOptions });
    }
    const peer = peerOf(socket);
    this.#giveWay();
    this.#unproven.add(socket);
    const timer = setTimeout(() => {
      onRefused(peer, `no TLS handshake within ${proveTimeoutMs} ms`);
      socket.destroy();
    }, proveTimeoutMs);
    const over = (): void => {
      clearTimeout(timer);
      this.#unproven.delete(socket);
      this.#shaking.delete(peer);
    };
    this.#shaking.set(peer, over);
    socket.on("close", () => {
      over();
      this.#callers.delete(peer);
    });
    server.emit("connection", socket);
  }

  #shook(socket: TLSSocket): void {
    const peer = peerOf(socket);
    const over = this.#shaking.get(peer);
    if (over === undefined) {
      // It has ended meanwhile, and has no address any more.
      socket.destroy();
      return;
    }
    over();
    const caller = callerBehind(socket, (this.#tlsNow as PeerTls).own);
    if (typeof caller === "string") {
      this.#options.onRefused(peer, caller);
      socket.destroy();
      return;
    }
    this.#callers.set(peer, caller);
    this.#greet(socket);
  }

  #giveWay(): void {
    if (this.#unproven.size < this.#options.unprovenMax) return;
    const [oldest] = this.#unproven as Set<Socket | undefined>;
    if (oldest === undefined) return;
    this.#unproven.delete(oldest);
    oldest.destroy();
  }

  #greet(socket: Socket): void {
    const { proveTimeoutMs, onRefused } = this.#options;
    const peer = peerOf(socket);
    this.#giveWay();
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
      const certified = this.callerAt(peer);
      if (certified === "gone") {
        socket.destroy();
        return;
      }
      const proven = provenTwice(step.by, certified);
      if (typeof proven === "string") {
        onRefused(peer, proven);
        socket.destroy();
      } else this.#options.plain(socket, begin, proven);
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
