/**
 * The calling half of the bus: one `BusClient` for each (address, lane). It holds at most one session, a stream of frames on a connection
 * of its own, made at the first call and made anew at the first call after it was lost.
 *
 *   queued ──frame written──> in flight ──answer──> settled
 *     │ deadline, abort, no connection: applied "no"
 *                                 │ deadline, abort, connection lost: applied "unknown"
 *
 * Nothing is written before the server has answered the opening of the connection, so that a call that fails before was certainly not
 * applied. A lost session fails everything it held: nothing moves over to the next session, so order holds. The exception is a server that no
 * longer accepts the secret that the connection was proven with: it refuses one call and all behind it, and these move over in their order,
 * when the old connection holds no bytes of theirs any more (the caller's memory is the caller's again as soon as a call has succeeded).
 */
import type { Failure, Outcome } from "@stamp/base";
import { refused } from "@stamp/base";
import type { CallOptions } from "@stamp/ports";
import { cancelledFailure, isRenewed, timeoutFailure } from "../failures.ts";
import type { MessageCodec, PreparedMessage } from "../message-codec.ts";
import type { GrpcLimits } from "../options.ts";
import type { AnswerFrames } from "./answer-frames.ts";
import type { FrameLink, LinkEvents } from "./frame-link.ts";
import { FrameWriter } from "./frame-writer.ts";
import type { IncomingAnswer, OutgoingRequest } from "./frames.ts";
import { decodeFrames, metadataFields } from "./frames.ts";

/** Makes a connection. `events` hears of its opening, data and end, never before the call returns. */
export type Dial = (address: string, events: LinkEvents) => FrameLink;

export interface BusMethod {
  readonly name: string;
  readonly field: Uint8Array;
  readonly request: MessageCodec;
  readonly answer: MessageCodec;
}

class Call {
  readonly item: OutgoingRequest;
  readonly method: BusMethod;
  readonly resolve: (outcome: Outcome<object>) => void;
  readonly deadlineMs: number;
  timer: NodeJS.Timeout | undefined;
  session: Session | undefined;
  signal: AbortSignal | undefined;
  onAbort: (() => void) | undefined;
  written = false;
  settled = false;

  constructor(item: OutgoingRequest, method: BusMethod, deadlineMs: number, resolve: (outcome: Outcome<object>) => void) {
    this.item = item;
    this.deadlineMs = deadlineMs;
    this.method = method;
    this.resolve = resolve;
  }

  settle(outcome: Outcome<object>): void {
    if (this.settled) return;
    this.settled = true;
    clearTimeout(this.timer);
    if (this.signal && this.onAbort) this.signal.removeEventListener("abort", this.onAbort);
    this.resolve(outcome);
  }
}

/** Returns what the caller gives back when it has done with the answer: its payload, or an answer without one. */
const heldOf = (answer: object): object => (Reflect.get(answer, "payload") as object | undefined) ?? answer;

class Session {
  readonly #link: FrameLink;
  readonly #writer: FrameWriter<OutgoingRequest>;
  readonly #calls = new Map<number, Call>();
  readonly #frames: AnswerFrames;
  readonly #address: string;
  readonly #onEnded: (wasOpen: boolean) => void;
  readonly #onRenewed: (calls: readonly Call[]) => void;
  readonly #connectTimer: NodeJS.Timeout;
  #nextCallId = 1;
  #open = false;
  #ended = false;
  /** True if the session takes no more calls, and ends with the last of those that it has. */
  #left = false;
  #onTaken: (() => void) | undefined;

  constructor(
    address: string,
    limits: GrpcLimits,
    dial: Dial,
    frames: AnswerFrames,
    onEnded: (wasOpen: boolean) => void,
    onRenewed: (calls: readonly Call[]) => void,
  ) {
    this.#address = address;
    this.#frames = frames;
    this.#onEnded = onEnded;
    this.#onRenewed = onRenewed;
    this.#link = dial(address, {
      open: () => {
        if (this.#ended) return;
        this.#open = true;
        clearTimeout(this.#connectTimer);
        this.#writer.open();
      },
      frame: (bytes) => this.#receive(bytes),
      closed: (why, unauthenticated, nobody) => this.#end(why, unauthenticated, nobody),
    });
    this.#writer = new FrameWriter(limits, this.#link, () => this.#tellTaken());
    this.#connectTimer = setTimeout(() => this.#end(`no connection within ${limits.connectTimeoutMs} ms`), limits.connectTimeoutMs);
  }

  get pendingBytes(): number {
    return this.#writer.pendingBytes;
  }

  get callCount(): number {
    return this.#calls.size;
  }

  /** True if a new connection is due and this one has nothing to lose: no call is under way. */
  get replaceable(): boolean {
    return this.#calls.size === 0 && this.#link.stale === true;
  }

  add(call: Call): void {
    while (this.#calls.has(this.#nextCallId)) this.#nextCallId = (this.#nextCallId % 0xffff_ffff) + 1;
    call.item.callId = this.#nextCallId;
    this.#nextCallId = (this.#nextCallId % 0xffff_ffff) + 1;
    this.#calls.set(call.item.callId, call);
    this.#writer.push(
      call.item,
      () => call.settled || call.session !== this,
      () => {
        call.written = true;
        // Time that is left after waiting for its turn.
        call.item.timeoutMs = Math.max(1, Math.ceil(call.deadlineMs - performance.now()));
      },
    );
  }

  /** Notes that the caller does not wait any more. */
  give(call: Call, failure: (applied: "no" | "unknown") => Failure): void {
    if (call.settled) return;
    this.#calls.delete(call.item.callId);
    if (call.written && !this.#ended) this.#writer.cancel(call.item.callId);
    call.settle({ ok: false, failure: failure(call.written ? "unknown" : "no") });
    this.#endWhenLeft();
  }

  close(): void {
    this.#end("closed by this process");
  }

  /** Calls `onTaken` once the system looks at no bytes that were written here, or this has ended. */
  whenTaken(onTaken: () => void): void {
    this.#onTaken = onTaken;
    this.#tellTaken();
  }

  #tellTaken(): void {
    if (this.#onTaken === undefined || !(this.#ended || this.#writer.taken)) return;
    const onTaken = this.#onTaken;
    this.#onTaken = undefined;
    onTaken();
  }

  #receive(bytes: Buffer): void {
    if (this.#ended) return;
    let answers: readonly IncomingAnswer[];
    try {
      answers = decodeFrames(bytes).answers;
    } catch (error) {
      this.#end(`a malformed frame came: ${String(error)}`);
      return;
    }
    const held = this.#frames.hold(bytes);
    for (const answer of answers) {
      const call = this.#calls.get(answer.callId);
      if (call === undefined) continue;
      if (answer.failure !== undefined && isRenewed(answer.failure)) {
        this.#leave(call);
        continue;
      }
      this.#calls.delete(answer.callId);
      const outcome = this.#outcome(call, answer);
      if (outcome.ok && call.method.answer.viewsFrame(answer.message.length)) held?.heldBy(heldOf(outcome.value));
      call.settle(outcome);
    }
    held?.end();
    this.#endWhenLeft();
  }

  /** Gives away the refused call and all that were made after it: the server refuses these, too. Those before it are still answered. */
  #leave(refusedCall: Call): void {
    const calls = [...this.#calls.values()];
    const moved = calls.slice(calls.indexOf(refusedCall));
    for (const { item } of moved) this.#calls.delete(item.callId);
    this.#left = true;
    this.#onRenewed(moved);
  }

  #endWhenLeft(): void {
    if (this.#left && this.#calls.size === 0) this.#end("the server accepts its secret no longer");
  }

  #outcome(call: Call, answer: IncomingAnswer): Outcome<object> {
    if (answer.failure) return { ok: false, failure: answer.failure };
    try {
      return { ok: true, value: call.method.answer.decode(answer.message) };
    } catch (error) {
      const message = `the answer of ${call.method.name} is malformed: ${String(error)}`;
      return { ok: false, failure: { code: "internal", reason: "bug", message, applied: "unknown" } };
    }
  }

  #end(why: string, unauthenticated = false, nobody = false): void {
    if (this.#ended) return;
    this.#ended = true;
    clearTimeout(this.#connectTimer);
    this.#writer.close();
    this.#link.destroy();
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    this.#onEnded(this.#open);
    this.#tellTaken();
    const reason = this.#open ? "connectionLost" : "connectFailed";
    const message = `${this.#address}: ${this.#open ? "the connection was lost" : "no connection"}: ${why}`;
    for (const call of calls) {
      const applied = call.written ? "unknown" : "no";
      // A wrong secret does not heal by itself; still the call is one that found no connection, and is tried again like one.
      const code = unauthenticated ? "unauthenticated" : "unavailable";
      // Silence says nothing about the process; a refused connection says that none is there.
      const details = nobody ? { details: { listens: "no" } } : {};
      call.settle({ ok: false, failure: { code, reason: unauthenticated ? "unauthorized" : reason, message, applied, ...details } });
    }
  }
}

export class BusClient {
  readonly #address: string;
  readonly #limits: GrpcLimits;
  readonly #dial: Dial;
  readonly #frames: AnswerFrames;
  #session: Session | undefined;
  /** Sessions that take no more calls and wait for the answers of some. */
  readonly #left = new Set<Session>();
  #failedInARow = 0;
  #notBeforeMs = 0;
  #waiting: Call[] = [];
  /** Sessions that were left and still hold bytes of calls that move: whatever is called waits, so that the order holds. */
  #moves = 0;
  #retryTimer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(address: string, limits: GrpcLimits, dial: Dial, frames: AnswerFrames) {
    this.#address = address;
    this.#frames = frames;
    this.#limits = limits;
    this.#dial = dial;
  }

  call(method: BusMethod, request: object, options: CallOptions): Promise<Outcome<object>> {
    if (this.#closed) return Promise.resolve(refused("unavailable", "stopping", "this transport is closed"));
    if (options.signal?.aborted) return Promise.resolve({ ok: false, failure: cancelledFailure("no", method.name) });
    if (!(options.timeoutMs > 0)) return Promise.resolve({ ok: false, failure: timeoutFailure("no", method.name) });
    let message: PreparedMessage;
    try {
      message = method.request.prepare(request);
    } catch (error) {
      return Promise.resolve(refused("invalidArgument", "badRequest", `the request of ${method.name} can't be encoded: ${String(error)}`));
    }
    if (message.sizeBytes > this.#limits.messageBytesMax) {
      return Promise.resolve(
        refused("resourceExhausted", "messageTooLarge", `the request of ${method.name} has ${message.sizeBytes} bytes`),
      );
    }
    const { queuedBytesMax, queuedCallsMax } = this.#limits;
    const callCount = this.#waiting.length + (this.#session?.callCount ?? 0);
    if ((this.#session?.pendingBytes ?? 0) + message.sizeBytes > queuedBytesMax || callCount >= queuedCallsMax) {
      return Promise.resolve(refused("resourceExhausted", "overloaded", `too much waits to be sent to ${this.#address}`));
    }
    return new Promise((resolve) => {
      const timeoutMs = Math.min(Math.max(1, Math.ceil(options.timeoutMs)), 0x7fff_ffff);
      const metadata = metadataFields(options.metadata);
      const call = new Call(
        { kind: "request", callId: 0, method: method.field, timeoutMs, metadata, message },
        method,
        performance.now() + timeoutMs,
        resolve,
      );
      call.timer = setTimeout(() => this.#give(call, (applied) => timeoutFailure(applied, method.name)), timeoutMs);
      if (options.signal) {
        call.signal = options.signal;
        call.onAbort = () => this.#give(call, (applied) => cancelledFailure(applied, method.name));
        options.signal.addEventListener("abort", call.onAbort, { once: true });
      }
      this.#send(call);
    });
  }

  /** Closes the connection as a failing network would; the next call makes a new one. */
  disconnect(): void {
    this.#session?.close();
    for (const session of [...this.#left]) session.close();
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#retryTimer);
    this.disconnect();
    for (const call of this.#waiting.splice(0)) call.settle(refused("unavailable", "stopping", "this transport is closed"));
  }

  #give(call: Call, failure: (applied: "no" | "unknown") => Failure): void {
    if (call.settled) return;
    const waiting = this.#waiting.indexOf(call);
    if (waiting >= 0) {
      this.#waiting.splice(waiting, 1);
      call.settle({ ok: false, failure: failure("no") });
    } else call.session?.give(call, failure);
  }

  #send(call: Call): void {
    if (this.#moves > 0) {
      this.#waiting.push(call);
      return;
    }
    if (this.#session?.replaceable) this.#session.close();
    if (this.#session === undefined) {
      const pauseMs = this.#notBeforeMs - performance.now();
      if (pauseMs > 0) {
        this.#waiting.push(call);
        this.#retryTimer ??= setTimeout(() => this.#afterPause(), Math.ceil(pauseMs));
        return;
      }
      this.#connect();
    }
    const session = this.#session as Session | undefined;
    if (session === undefined) return;
    call.session = session;
    session.add(call);
  }

  #afterPause(): void {
    this.#retryTimer = undefined;
    this.#notBeforeMs = 0;
    this.#sendWaiting();
  }

  #sendWaiting(): void {
    if (this.#closed) return;
    for (const call of this.#waiting.splice(0)) this.#send(call);
  }

  #connect(): void {
    const onEnded = (wasOpen: boolean): void => {
      if (this.#session === session) this.#session = undefined;
      this.#left.delete(session);
      this.#failedInARow = wasOpen ? 0 : this.#failedInARow + 1;
      const { reconnectMinMs, reconnectMaxMs } = this.#limits;
      const pauseMs = wasOpen ? 0 : Math.min(reconnectMaxMs, reconnectMinMs * 2 ** (this.#failedInARow - 1));
      this.#notBeforeMs = performance.now() + pauseMs;
    };
    const onRenewed = (calls: readonly Call[]): void => {
      if (this.#session === session) this.#session = undefined;
      this.#left.add(session);
      this.#moves += 1;
      for (const call of calls) {
        call.written = false;
        call.session = undefined;
        this.#send(call);
      }
      session.whenTaken(() => {
        this.#moves -= 1;
        this.#sendWaiting();
      });
    };
    const session: Session = new Session(this.#address, this.#limits, this.#dial, this.#frames, onEnded, onRenewed);
    this.#session = session;
  }
}
