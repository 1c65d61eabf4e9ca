/**
 * The receiving half of the bus, for one connection. Handlers are started synchronously in the order in which their
 * requests arrived; answers go back when they are ready.
 *
 * Bounds: a connection stops being read while `inFlightCallsMax` calls or `inFlightBytesMax` bytes (requests being handled and answers not
 * yet written) are in flight; what one frame holds beyond that is bounded by its size. A call whose answer carries a payload counts
 * from its start with what answers of its method had lately, so that a thousand small requests can't ask for gigabytes. A call gives its place back at its deadline
 * even when its handler goes on.
 */
import { assert, type Failure, type Outcome } from "@stamp/base";
import type { Clock, Logger } from "@stamp/ports";
import { type Caller, methodsFor } from "@stamp/wire";
import { CallState } from "../call-state.ts";
import { forbidden, renewedFailure, stoppingFailure, timeoutFailure, unknownMethodFailure } from "../failures.ts";
import type { PreparedMessage } from "../message-codec.ts";
import { preparedNothing } from "../message-codec.ts";
import type { ServedUnary } from "../methods.ts";
import { failureOfThrown } from "../methods.ts";
import type { GrpcLimits } from "../options.ts";
import type { FrameLink, LinkEvents } from "./frame-link.ts";
import type { FrameMemory } from "./frame-memory.ts";
import { FrameWriter } from "./frame-writer.ts";
import type { IncomingRequest, OutgoingAnswer } from "./frames.ts";
import { decodeFrames, failureField, outgoingSize } from "./frames.ts";

/** Expected size of an answer with a payload, in bytes, before one was seen. */
const answerBytesFirst = 64 * 1024;
const noFailure = new Uint8Array(0);

interface Running {
  readonly state: CallState;
  /** Called after the answer was sent; undefined: the handler has no use for it. */
  sent: (() => void) | undefined;
  readonly sizeBytes: number;
  timer: NodeJS.Timeout | undefined;
}

export interface BusServerContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: GrpcLimits;
  readonly methods: ReadonlyMap<string, ServedUnary>;
  /** False when the caller's proof is no longer accepted: its calls are refused and the connection ends. */
  readonly stands: () => boolean;
  /** Role of the caller; undefined if it says none. */
  readonly caller: Caller | undefined;
  /** Name of the caller by its certificate; undefined without TLS. */
  readonly name: string | undefined;
  readonly onForbidden: (why: string) => void;
  /** Memory that the frames of plain connections lie in. */
  readonly memory: FrameMemory;
}

/** Returns a function that gives the frame back when it was called once for each of the requests in it. */
function giveBack(frame: Buffer, requests: number, memory: FrameMemory): () => void {
  let left = requests;
  return () => {
    left -= 1;
    if (left === 0) memory.give(frame);
  };
}

/** Returns a function that may be called once. Two calls would free the memory of another payload. */
function once(give: (() => void) | undefined): (() => void) | undefined {
  if (give === undefined) return undefined;
  let given = false;
  return () => {
    assert(!given, "a payload is given back once");
    given = true;
    give();
  };
}

export class BusServerConnection {
  readonly #context: BusServerContext;
  readonly #link: FrameLink;
  readonly #peer: string;
  readonly #running = new Map<number, Running>();
  readonly #writer: FrameWriter<OutgoingAnswer>;
  readonly #answerBytes = new Map<string, number>();
  #runningBytes = 0;
  #paused = false;
  #draining = false;
  #expelled = false;
  /** Names of the methods that the caller may call; undefined if it says no role. */
  readonly #allowed: ReadonlySet<string> | undefined;
  #ended = false;
  readonly #onEnded: () => void;

  constructor(context: BusServerContext, peer: string, accept: (events: LinkEvents) => FrameLink, onEnded: () => void) {
    this.#context = context;
    this.#allowed = context.caller === undefined ? undefined : methodsFor(context.caller);
    this.#peer = peer;
    this.#onEnded = onEnded;
    this.#link = accept({ open: () => {}, frame: (bytes) => this.#receive(bytes), closed: () => this.#end() });
    this.#writer = new FrameWriter(context.limits, this.#link, () => this.#afterProgress());
    this.#writer.open();
  }

  /** Number of calls that are not answered yet. */
  get runningCount(): number {
    return this.#running.size;
  }

  /** Ends the connection at once. `closed` may still be told. */
  destroy(): void {
    this.#end();
    this.#link.destroy();
  }

  /** Refuses new calls from now on; the connection ends when the running ones are answered. */
  drain(): void {
    this.#draining = true;
    this.#endWhenDrained();
  }

  #receive(bytes: Buffer): void {
    if (this.#ended) return;
    try {
      const frames = decodeFrames(bytes);
      if (!this.#expelled && !this.#context.stands()) this.#expel();
      for (const callId of frames.cancelled) this.#cancel(callId);
      const { memory } = this.#context;
      // An answer to a call of ours never comes here; so a frame that is given back by all its requests is free.
      const given = memory.isReused(bytes) ? giveBack(bytes, frames.requests.length, memory) : undefined;
      for (const request of frames.requests) this.#start(request, given);
    } catch (error) {
      this.#context.logger.warn("a connection is dropped because of a malformed frame", { peer: this.#peer, error });
      this.#end();
      return;
    }
    this.#pauseWhenFull();
  }

  /**
   * Refuses what comes from now on. Calls that began before are answered: their caller was a member of the stamp when it made them. The
   * connection stays for a while, so that the refusals reach the caller before its end does: it takes all of them as not applied.
   */
  #expel(): void {
    this.#expelled = true;
    setTimeout(() => this.drain(), this.#context.limits.proveTimeoutMs).unref();
  }

  #start(request: IncomingRequest, giveBackFrame: (() => void) | undefined): void {
    const { callId, message } = request;
    if (this.#running.has(callId)) throw new Error(`call id ${callId} is in use`);
    const method = this.#context.methods.get(request.method);
    if (method === undefined) {
      this.#refuse(callId, unknownMethodFailure(request.method));
      return;
    }
    const { caller, onForbidden } = this.#context;
    if (caller !== undefined && !this.#allowed?.has(method.name)) {
      const failure = forbidden(caller, method.name);
      onForbidden(failure.message);
      this.#refuse(callId, failure);
      return;
    }
    if (this.#expelled || this.#draining) {
      this.#refuse(callId, this.#expelled ? renewedFailure : stoppingFailure);
      return;
    }
    let decoded: ReturnType<ServedUnary["request"]["decode"]>;
    try {
      decoded = method.request.decode(message);
    } catch (error) {
      const text = `the request of ${request.method} is malformed: ${String(error)}`;
      this.#refuse(callId, { code: "invalidArgument", reason: "badRequest", message: text, applied: "no" });
      return;
    }
    const denied = caller === undefined ? undefined : method.check?.(decoded, caller, this.#context.name);
    if (caller !== undefined && denied !== undefined) {
      const failure = forbidden(caller, denied);
      onForbidden(failure.message);
      this.#refuse(callId, failure);
      return;
    }
    const state = new CallState(this.#context.clock.monotonicMs() + request.timeoutMs, this.#peer, request.metadata, this.#context);
    state.giveBackPayload = once(giveBackFrame);
    const running: Running = { state, sizeBytes: message.length + this.#expectedAnswerBytes(method), timer: undefined, sent: undefined };
    if (method.answer.holdsBytes) {
      state.whenSent = (sent) => {
        running.sent = sent;
      };
    }
    running.timer = setTimeout(() => this.#expire(callId, running, method.name), request.timeoutMs);
    this.#running.set(callId, running);
    this.#runningBytes += running.sizeBytes;
    let outcome: Promise<Outcome<object>>;
    try {
      outcome = method.handler(decoded, state);
    } catch (error) {
      outcome = Promise.reject(error);
    }
    outcome.then(
      (given) => this.#finish(callId, running, method, given),
      (error: unknown) =>
        this.#finish(callId, running, method, { ok: false, failure: failureOfThrown(error, method.name, this.#context.logger) }),
    );
  }

  #finish(callId: number, running: Running, method: ServedUnary, outcome: Outcome<object>): void {
    if (!this.#release(callId, running)) return;
    if (!outcome.ok) {
      this.#refuse(callId, outcome.failure);
      return;
    }
    let message: PreparedMessage;
    try {
      message = method.answer.prepare(outcome.value);
    } catch (error) {
      this.#refuse(callId, failureOfThrown(error, `the answer of ${method.name}`, this.#context.logger));
      return;
    }
    this.#learnAnswerBytes(method, message.sizeBytes);
    if (message.sizeBytes > this.#context.limits.messageBytesMax) {
      const text = `the answer of ${method.name} has ${message.sizeBytes} bytes`;
      this.#refuse(callId, { code: "resourceExhausted", reason: "messageTooLarge", message: text, applied: "unknown" });
      return;
    }
    this.#answer({ kind: "answer", callId, failure: noFailure, message }, running.sent);
  }

  #expectedAnswerBytes(method: ServedUnary): number {
    return method.answer.hasPayload ? (this.#answerBytes.get(method.name) ?? answerBytesFirst) : 0;
  }

  /** Rises at once, falls slowly. */
  #learnAnswerBytes(method: ServedUnary, sizeBytes: number): void {
    if (!method.answer.hasPayload) return;
    const before = this.#answerBytes.get(method.name) ?? 0;
    this.#answerBytes.set(method.name, Math.max(sizeBytes, before * 0.95 + sizeBytes * 0.05));
  }

  #expire(callId: number, running: Running, name: string): void {
    if (!this.#release(callId, running)) return;
    running.state.abort();
    this.#refuse(callId, timeoutFailure("unknown", name));
  }

  #cancel(callId: number): void {
    const running = this.#running.get(callId);
    if (running === undefined) return;
    this.#release(callId, running);
    running.state.abort();
    this.#afterProgress();
  }

  /** Releases a call; false if it was released before, so that nobody waits for it. */
  #release(callId: number, running: Running): boolean {
    if (this.#running.get(callId) !== running) return false;
    this.#running.delete(callId);
    this.#runningBytes -= running.sizeBytes;
    clearTimeout(running.timer);
    return true;
  }

  #refuse(callId: number, failure: Failure): void {
    this.#answer({ kind: "answer", callId, failure: failureField(failure), message: preparedNothing });
  }

  #answer(answer: OutgoingAnswer, sent?: () => void): void {
    if (this.#ended) return;
    this.#writer.push(
      answer,
      () => false,
      () => {},
      sent,
    );
    if (outgoingSize(answer) > this.#context.limits.frameBytes) this.#pauseWhenFull();
    else this.#afterProgress();
  }

  #full(): boolean {
    const { inFlightCallsMax, inFlightBytesMax } = this.#context.limits;
    return (
      this.#running.size + this.#writer.pendingCount >= inFlightCallsMax ||
      this.#runningBytes + this.#writer.pendingBytes >= inFlightBytesMax
    );
  }

  #pauseWhenFull(): void {
    if (this.#paused || this.#ended || !this.#full()) return;
    this.#paused = true;
    this.#link.pause();
  }

  #afterProgress(): void {
    if (this.#ended) return;
    if (this.#paused && !this.#full()) {
      this.#paused = false;
      this.#link.resume();
    }
    this.#endWhenDrained();
  }

  #endWhenDrained(): void {
    if (!this.#draining || this.#ended || this.#running.size > 0 || !this.#writer.idle) return;
    this.#end();
  }

  #end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#writer.close();
    for (const { state, timer } of this.#running.values()) {
      clearTimeout(timer);
      state.abort();
    }
    this.#running.clear();
    this.#link.end();
    this.#onEnded();
  }
}
