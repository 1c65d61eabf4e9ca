/**
 * Sends messages to the other members. Each member has a queue, and one call at a time, so messages keep their order.
 *
 * Invariants:
 *   - Nothing waits for a member: a call that fails loses its messages, and a queue that is full loses its oldest. Raft sends again.
 *   - Every call carries the lineage of the sender's rows (rule consensusSameLineage).
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Address, sleep, type World } from "@stamp/ports";
import type { MemberId, Message } from "@stamp/raft";
import { Consensus, type RaftMessageSchema } from "@stamp/wire";
import { messageToWire } from "./wire-messages.ts";

type WireMessage = MessageInitShape<typeof RaftMessageSchema>;

/** Time after which a member that does not take a call up is left for the next call, in milliseconds. */
const callTimeoutMs = 1_000;
/** Pause after a call that failed, in milliseconds. */
const pauseMs = 50;
const queueMax = 4_096;
const queueBytesMax = 16 << 20;
const callBytesMax = 4 << 20;

interface Queued {
  readonly message: WireMessage;
  readonly bytes: number;
}

interface Peer {
  readonly address: Address;
  queue: Queued[];
  bytes: number;
  sending: boolean;
}

export interface PeersOptions {
  readonly name: MemberId;
  /** Addresses of all members, by name. */
  readonly members: ReadonlyMap<MemberId, Address>;
  readonly lineage: () => Uint8Array;
  /** Called with a member's answer: the lineage of its rows, and if it has served metadata in etcd. */
  readonly heard: (from: MemberId, lineage: Uint8Array, servedEtcd: boolean) => void;
}

export class Peers {
  readonly #world: Pick<World, "clock" | "transport">;
  readonly #options: PeersOptions;
  readonly #peers: ReadonlyMap<MemberId, Peer>;
  readonly #stopping = new AbortController();

  constructor(world: Pick<World, "clock" | "transport">, options: PeersOptions) {
    this.#world = world;
    this.#options = options;
    const others = [...options.members].filter(([id]) => id !== options.name);
    this.#peers = new Map(others.map(([id, address]) => [id, { address, queue: [], bytes: 0, sending: false }]));
  }

  get names(): readonly MemberId[] {
    return [...this.#peers.keys()];
  }

  send(messages: readonly Message[]): void {
    for (const message of messages) {
      const peer = this.#peers.get(message.to);
      if (peer === undefined) continue;
      const queued = { message: messageToWire(message), bytes: sizeOf(message) };
      peer.queue.push(queued);
      peer.bytes += queued.bytes;
      while (peer.queue.length > queueMax || (peer.bytes > queueBytesMax && peer.queue.length > 1))
        peer.bytes -= peer.queue.shift()?.bytes ?? 0;
      if (!peer.sending) void this.#run(message.to, peer);
    }
  }

  /** Asks every member for the lineage of its rows. The answers go to `heard`. */
  async ask(): Promise<void> {
    await Promise.all([...this.#peers].map(([id, peer]) => this.#call(id, peer, [])));
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #run(id: MemberId, peer: Peer): Promise<void> {
    peer.sending = true;
    const { signal } = this.#stopping;
    while (peer.queue.length > 0 && !signal.aborted) {
      const messages: WireMessage[] = [];
      for (let bytes = 0; peer.queue[0] !== undefined && (messages.length === 0 || bytes + peer.queue[0].bytes <= callBytesMax); ) {
        const next = peer.queue.shift() as Queued;
        bytes += next.bytes;
        peer.bytes -= next.bytes;
        messages.push(next.message);
      }
      if (!(await this.#call(id, peer, messages))) await sleep(this.#world.clock, pauseMs, signal);
    }
    peer.sending = false;
  }

  async #call(to: MemberId, { address }: Peer, messages: readonly WireMessage[]): Promise<boolean> {
    const { name, lineage, heard } = this.#options;
    const request = { from: name, to, lineage: lineage() as Uint8Array<ArrayBuffer>, messages: [...messages] };
    const client = this.#world.transport.client(address, Consensus);
    const answer = await client.deliver(request, { timeoutMs: callTimeoutMs, signal: this.#stopping.signal });
    if (answer.ok && !this.#stopping.signal.aborted) heard(to, answer.value.lineage.slice(), answer.value.servedEtcd);
    return answer.ok;
  }
}

/** Returns the size in a call, about. */
function sizeOf(message: Message): number {
  if (message.kind === "snapshotChunk") return 64 + message.bytes.length;
  if (message.kind !== "append") return 128;
  return message.entries.reduce((sum, { body }) => sum + 64 + (body.kind === "data" ? body.data.length : 128), 64);
}
