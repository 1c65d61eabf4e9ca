/**
 * The sending half of a bus connection: what became ready in one tick goes out as one frame, at most `writingBytesMax` are on their way
 * into the socket at a time, and what has to wait makes the next frame larger. An idle connection sends at once, a busy one in batches;
 * there are no timers.
 */

import type { GrpcLimits } from "../options.ts";
import type { FrameShape, Outgoing } from "./frames.ts";
import { encodeFrames, outgoingSize } from "./frames.ts";

export interface FrameSink extends FrameShape {
  /** Writes one frame in parts, which are borrowed until `written`; `error`: perhaps not all of them went out, and the connection ends. */
  write(parts: readonly Buffer[], written: (error?: Error | null) => void): void;
}

/**
 * A queued item. `drop` says when its turn comes that it is not needed any more; `leave` that it goes into the frame that is written now; `sent`
 * that the system has taken it, and nobody looks at its bytes any more.
 */
export interface Queued<T extends Outgoing> {
  readonly item: T;
  readonly sizeBytes: number;
  readonly dropped: () => boolean;
  readonly leave: () => void;
  readonly sent: (() => void) | undefined;
}

export class FrameWriter<T extends Outgoing> {
  readonly #limits: GrpcLimits;
  readonly #sink: FrameSink;
  readonly #written: () => void;
  #queue: Queued<T>[] = [];
  #head = 0;
  #cancelled: number[] = [];
  #queuedBytes = 0;
  #writingBytes = 0;
  #open = false;
  #scheduled = false;

  /** `written` is told after every frame that went out. */
  constructor(limits: GrpcLimits, sink: FrameSink, written: () => void = () => {}) {
    this.#limits = limits;
    this.#sink = sink;
    this.#written = written;
  }

  /** Queued and not yet written to the socket. */
  get pendingBytes(): number {
    return this.#queuedBytes + this.#writingBytes;
  }

  /** True if the system has taken all written bytes; until then it may still read items' bytes. */
  get taken(): boolean {
    return this.#writingBytes === 0;
  }

  get pendingCount(): number {
    return this.#queue.length - this.#head;
  }

  get idle(): boolean {
    return this.pendingCount === 0 && this.#cancelled.length === 0 && this.#writingBytes === 0;
  }

  /** Opens the writer: frames may be written from now on; before, everything waits. */
  open(): void {
    this.#open = true;
    this.#schedule();
  }

  push(item: T, dropped: () => boolean, leave: () => void, sent?: () => void): void {
    const sizeBytes = outgoingSize(item);
    this.#queuedBytes += sizeBytes;
    this.#queue.push({ item, sizeBytes, dropped, leave, sent });
    this.#schedule();
  }

  cancel(callId: number): void {
    this.#cancelled.push(callId);
    this.#schedule();
  }

  /** Closes the writer: nothing more is written; what waited is forgotten. */
  close(): void {
    this.#open = false;
    this.#queue = [];
    this.#head = 0;
    this.#cancelled = [];
    this.#queuedBytes = 0;
  }

  #schedule(): void {
    if (this.#scheduled || !this.#open) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#open && this.#writingBytes < this.#limits.writingBytesMax && (this.pendingCount > 0 || this.#cancelled.length > 0)) {
      this.#writeOne();
    }
  }

  #writeOne(): void {
    const items: T[] = [];
    const told: (() => void)[] = [];
    let sizeBytes = 0;
    while (this.#head < this.#queue.length && (items.length === 0 || sizeBytes < this.#limits.frameBytes)) {
      const queued = this.#queue[this.#head] as Queued<T>;
      const dropped = queued.dropped();
      if (!dropped && items.length > 0 && sizeBytes + queued.sizeBytes > this.#limits.frameBytes * 2) break;
      this.#head += 1;
      this.#queuedBytes -= queued.sizeBytes;
      if (dropped) continue;
      queued.leave();
      items.push(queued.item);
      if (queued.sent !== undefined) told.push(queued.sent);
      sizeBytes += queued.sizeBytes;
    }
    if (this.#head === this.#queue.length) {
      this.#queue = [];
      this.#head = 0;
    } else if (this.#head > 1024) {
      this.#queue = this.#queue.slice(this.#head);
      this.#head = 0;
    }
    const cancelled = this.#cancelled;
    this.#cancelled = [];
    if (items.length === 0 && cancelled.length === 0) return;
    const parts = encodeFrames(items, cancelled, this.#sink);
    let frameBytes = 0;
    for (const part of parts) frameBytes += part.length;
    this.#writingBytes += frameBytes;
    this.#sink.write(parts, (error) => {
      if (!error) for (const sent of told) sent();
      this.#writingBytes -= frameBytes;
      this.#schedule();
      this.#written();
    });
  }
}
