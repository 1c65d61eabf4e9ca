/**
 * One connection from a client process to an address, for one lane: made on first use, broken once and for ever. Each side learns of a
 * break for itself. What the calls on it make of that is theirs (`ClientCall`, `ServerCall`).
 */
import type { Address } from "@stamp/ports";
import type { Incarnation } from "../kernel/process.ts";
import type { Network, SimListener } from "./network.ts";
import { Pipe } from "./pipe.ts";
import type { ServerCall } from "./server-call.ts";

export interface ClientCall {
  readonly id: number;
  /** Notes that the connection is gone; `sent` says whether the request had left. */
  lost(sent: boolean): void;
}

/** A server process's end of a connection. */
export interface ServerEnd {
  readonly listener: SimListener;
  readonly calls: Map<number, ServerCall>;
  broken: boolean;
}

interface Queued {
  readonly label: string;
  readonly call: number;
  readonly deliver: (server: ServerEnd, sentAtUs: number) => void;
}

export class Connection {
  readonly address: Address;
  readonly client: Incarnation;
  readonly id: number;
  readonly #network: Network;
  readonly #onBroken: () => void;
  readonly #calls = new Map<number, ClientCall>();
  readonly #sentCalls = new Set<number>();
  #queue: Queued[] = [];
  #toServer: Pipe | undefined;
  #toClient: Pipe | undefined;
  #server: ServerEnd | undefined;
  #broken = false;
  #breaking = false;

  constructor(network: Network, client: Incarnation, address: Address, onBroken: () => void) {
    this.#network = network;
    this.client = client;
    this.address = address;
    this.#onBroken = onBroken;
    this.id = network.nextConnection();
    client.opened.add(this);
    this.#tryConnect(client.nowUs + network.options.connectTimeoutMs * 1000);
  }

  get broken(): boolean {
    return this.#broken;
  }

  add(call: ClientCall): void {
    this.#calls.set(call.id, call);
  }

  done(call: ClientCall): void {
    this.#calls.delete(call.id);
    this.#sentCalls.delete(call.id);
  }

  wasSent(call: ClientCall): boolean {
    return this.#sentCalls.has(call.id);
  }

  /** Runs `deliver` at the server, behind everything that was sent before. */
  toServer(call: number, label: string, deliver: (server: ServerEnd, sentAtUs: number) => void): void {
    if (this.#broken || !this.client.alive) return;
    if (!this.#toServer) this.#queue.push({ call, label, deliver });
    else this.#send({ call, label, deliver });
  }

  /** Delays the bytes on their way to the server, and all that follow on this connection. */
  holdToServer(delayUs: number): void {
    this.#toServer?.hold(delayUs);
  }

  holdToClient(delayUs: number): void {
    this.#toClient?.hold(delayUs);
  }

  /** Withdraws a call that has not left yet: it never will. */
  withdraw(call: ClientCall): void {
    this.#queue = this.#queue.filter((queued) => queued.call !== call.id);
  }

  /** Runs `deliver` at the client, behind everything that was sent before. */
  toClient(label: string, deliver: () => void): void {
    const server = this.#server;
    if (!server || server.broken || !server.listener.incarnation.alive) return;
    if (this.#breaksBySelf()) return;
    this.#toClient?.send(label, () => {
      if (!this.#broken) deliver();
    });
  }

  breakAtClient(): void {
    if (this.#broken) return;
    this.#broken = true;
    this.client.opened.delete(this);
    this.#queue = [];
    const lingersUs = this.#endToServer(true);
    this.#toClient?.drop();
    this.#onBroken();
    const calls = [...this.#calls.values()];
    const sent = new Set(this.#sentCalls);
    this.#calls.clear();
    for (const call of calls) call.lost(sent.has(call.id));
    this.#tellServer(this.#hasReset(), lingersUs);
  }

  breakAtServer(): void {
    const server = this.#server;
    if (!server || server.broken) return;
    server.broken = true;
    server.listener.incarnation.accepted.delete(this);
    this.#toClient?.cutShort();
    for (const call of server.calls.values()) call.abort();
    server.calls.clear();
    this.#tellClient(this.#hasReset());
  }

  /** Ends the server's side; `reset`: its machine lives and says so; else only keep-alive finds out. */
  serverDied(reset: boolean): void {
    if (this.#server) this.#server.broken = true;
    this.#toClient?.cutShort();
    this.#tellClient(reset);
  }

  clientDied(reset: boolean): void {
    this.#broken = true;
    this.#tellServer(reset, this.#endToServer(reset));
  }

  /** Pauses the server's side: its keep-alive answers stay out. */
  serverPaused(): void {
    this.#watch();
  }

  get server(): ServerEnd | undefined {
    return this.#server;
  }

  #tryConnect(giveUpAtUs: number): void {
    const network = this.#network;
    const refuse = (afterUs: number): void => {
      this.client.schedule(afterUs, "refused", this.address, () => this.breakAtClient());
    };
    this.client.schedule(2 * network.delayUs(), "connect", this.address, () => {
      if (this.#broken) return;
      const host = network.hostOf(this.address);
      const me = this.client.name;
      const listener = network.listeners.get(this.address);
      const reachable = !network.isCut(me, host) && !network.isCut(host, me);
      if (reachable && listener?.incarnation.alive) return this.#connected(listener);
      if (reachable && !network.silentHosts.has(host)) return refuse(0);
      const againUs = 200_000;
      if (this.client.nowUs + againUs >= giveUpAtUs) return refuse(Math.max(0, giveUpAtUs - this.client.nowUs));
      this.client.schedule(againUs, "connect", this.address, () => this.#tryConnect(giveUpAtUs));
    });
  }

  #connected(listener: SimListener): void {
    this.#server = { listener, calls: new Map(), broken: false };
    listener.incarnation.accepted.add(this);
    const onStall = (): void => this.#watch();
    this.#toServer = new Pipe(this.#network, this.client, listener.incarnation, onStall);
    this.#toClient = new Pipe(this.#network, listener.incarnation, this.client, onStall);
    const queue = this.#queue;
    this.#queue = [];
    for (const queued of queue) this.#send(queued);
  }

  #send(queued: Queued): void {
    const server = this.#server as ServerEnd;
    if (this.#calls.has(queued.call)) this.#sentCalls.add(queued.call);
    if (this.#breaksBySelf()) return;
    const sentAtUs = this.client.nowUs;
    this.#toServer?.send(queued.label, () => {
      if (!server.broken) queued.deliver(server, sentAtUs);
    });
  }

  /** Breaks the connection: bytes on their way in either direction are lost, also those sent before the ends know of it. */
  #breaksBySelf(): boolean {
    const { options, prng } = this.#network;
    if (this.#breaking) return true;
    if (options.breakChance === 0 || !prng.chance(options.breakChance)) return false;
    this.#breaking = true;
    this.client.schedule(this.#network.delayUs(), "break", this.address, () => this.breakAtClient());
    return true;
  }

  /** Watches keep-alive: each side gives the connection up when nothing came through for long. */
  #watch(): void {
    const server = this.#server?.listener.incarnation;
    const stuck = (): boolean => this.#toServer?.stuck === true || this.#toClient?.stuck === true || server?.paused === true;
    const afterUs = this.#keepAliveUs();
    this.client.schedule(afterUs, "keep-alive", this.address, () => {
      if (stuck()) this.breakAtClient();
    });
    server?.schedule(afterUs, "keep-alive", this.client.name, () => {
      if (this.#toServer?.stuck || this.#toClient?.stuck) this.breakAtServer();
    });
  }

  #keepAliveUs(): number {
    return this.#network.options.keepAliveMs * 1000 + this.#network.prng.below(1_000_000);
  }

  /** True if the other side hears of a break at once. */
  #hasReset(): boolean {
    const server = this.#server?.listener.incarnation.name;
    if (server === undefined) return true;
    return !this.#network.isCut(this.client.name, server) && !this.#network.isCut(server, this.client.name);
  }

  /** Sends the rest of a closed socket of a living machine again and again, then its end. Returns the latest time of its arrival. */
  #endToServer(machineLives: boolean): number {
    const { options, prng } = this.#network;
    if (options.lingerMs === 0 || !machineLives) {
      this.#toServer?.cutShort();
      return 0;
    }
    const lingersUs = prng.below(options.lingerMs * 1000);
    this.#toServer?.hold(lingersUs);
    return lingersUs;
  }

  #tellServer(reset: boolean, afterUs = 0): void {
    const server = this.#server?.listener.incarnation;
    if (!server) return;
    const delayUs = reset ? this.#network.delayUs() + 500 : this.#keepAliveUs();
    server.schedule(afterUs + delayUs, "reset", this.client.name, () => this.breakAtServer());
  }

  #tellClient(reset: boolean): void {
    this.client.schedule(reset ? this.#network.delayUs() + 500 : this.#keepAliveUs(), "reset", this.address, () => this.breakAtClient());
  }
}
