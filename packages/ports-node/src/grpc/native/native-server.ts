/**
 * The other door of the same handlers: each method as an ordinary gRPC method, for gRPC tools and for methods that stream. Deadlines
 * and cancellation are gRPC's own; a failure is a status with `stamp-reason` and `stamp-applied` in its metadata.
 */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import type {
  Metadata,
  ServerDuplexStream,
  ServerReadableStream,
  ServerUnaryCall,
  ServerWritableStream,
  sendUnaryData,
  UntypedHandleCall,
  UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { Failure, Outcome } from "@stamp/base";
import type { CallContext, Clock, Logger, ServedService } from "@stamp/ports";
import { type RequestCheck, requestCheckOf } from "@stamp/wire";
import { CallState } from "../call-state.ts";
import { provenOf } from "../credentials/guard.ts";
import { cancelledFailure, cutFailure, forbidden } from "../failures.ts";
import type { MessageCodec, PreparedMessage } from "../message-codec.ts";
import { codecOf } from "../message-codec.ts";
import { failureOfThrown, methodName, type UnaryHandler } from "../methods.ts";
import type { GrpcLimits } from "../options.ts";
import { toStatus } from "./status.ts";
import { readAll, writeAll } from "./streams.ts";

/** Call in progress at the server. */
export interface RunningCall {
  /** Ends the call for its handler; its caller gets a failure. */
  cut(): void;
}

export interface NativeContext {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: GrpcLimits;
  /** Calls in progress, so that a closing server can wait for them. */
  readonly running: Set<RunningCall>;
  /** Notes that a handler authorized a call of the peer. */
  readonly onAuthorized: (peer: string) => void;
  /** Tells that a call was refused by the table of callers. */
  readonly onForbidden: (peer: string, why: string) => void;
}

interface NativeCall {
  readonly metadata: Metadata;
  getPeer(): string;
  getDeadline(): Date | number;
  on(event: "cancelled", listener: () => void): unknown;
}

type StreamOut = (request: Message, context: CallContext) => AsyncIterable<object>;
type StreamIn = (requests: AsyncIterable<Message>, context: CallContext) => Promise<Outcome<object>>;
type StreamBoth = (requests: AsyncIterable<Message>, context: CallContext) => AsyncIterable<object>;

function textMetadata(metadata: Metadata): Record<string, string> {
  const texts: Record<string, string> = {};
  for (const [key, value] of Object.entries(metadata.getMap())) if (typeof value === "string") texts[key] = value;
  return texts;
}

interface Begun {
  readonly state: CallState;
  /** Ends the call; false if it was cut, and its caller has the answer. */
  readonly finish: () => boolean;
}

/**
 * Begins a call: its state ends with its deadline or when the caller goes away. `isOpen`: nobody has looked at what the caller says of itself.
 * `fail` answers the caller.
 */
function begin(native: NativeContext, call: NativeCall, isOpen: boolean, fail: (failure: Failure) => void): Begun {
  const deadline = call.getDeadline();
  const dueMs = deadline instanceof Date ? deadline.getTime() : deadline;
  const leftMs = Number.isFinite(dueMs) ? Math.max(0, dueMs - native.clock.wallMs()) : native.limits.defaultTimeoutMs;
  const peer = call.getPeer();
  const authorized = (): void => native.onAuthorized(peer);
  const state = new CallState(
    native.clock.monotonicMs() + leftMs,
    peer,
    textMetadata(call.metadata),
    isOpen ? {} : provenOf(call.metadata),
    authorized,
  );
  const timer = setTimeout(() => state.abort(), Math.min(leftMs, 0x7fff_ffff));
  call.on("cancelled", () => state.abort());
  const finish = (): boolean => {
    clearTimeout(timer);
    return native.running.delete(running);
  };
  const running: RunningCall = {
    cut: () => {
      finish();
      state.abort();
      fail(cutFailure);
    },
  };
  native.running.add(running);
  return { state, finish };
}

async function outcomeOf(
  work: () => Promise<Outcome<object>>,
  name: string,
  answer: MessageCodec,
  logger: Logger,
): Promise<Outcome<PreparedMessage>> {
  try {
    const outcome = await work();
    return outcome.ok ? { ok: true, value: answer.prepare(outcome.value) } : outcome;
  } catch (error) {
    return { ok: false, failure: failureOfThrown(error, name, logger) };
  }
}

function sendOutcome(callback: sendUnaryData<PreparedMessage>, outcome: Outcome<PreparedMessage>): void {
  if (outcome.ok) callback(null, outcome.value);
  else callback(toStatus(outcome.failure));
}

async function sendAnswers(
  native: NativeContext,
  call: ServerWritableStream<Message, PreparedMessage> | ServerDuplexStream<Message, PreparedMessage>,
  answers: () => AsyncIterable<object>,
  codec: MessageCodec,
  { state, finish }: Begun,
  name: string,
): Promise<void> {
  let failure: Failure | undefined;
  try {
    const complete = await writeAll(call, answers(), codec, state.signal);
    if (!complete) failure = cancelledFailure("unknown", name);
  } catch (error) {
    // An error of a handler after its caller left is no bug.
    failure = state.aborted ? cancelledFailure("unknown", name) : failureOfThrown(error, name, native.logger);
  }
  if (!finish()) return;
  if (failure) failStream(call, failure);
  else call.end();
}

function failStream(
  call: ServerWritableStream<Message, PreparedMessage> | ServerDuplexStream<Message, PreparedMessage>,
  failure: Failure,
): void {
  call.emit("error", toStatus(failure));
}

/** Returns the refusal of a request that the caller may not send; undefined: it may. */
function deniedBy(check: RequestCheck, call: ServerUnaryCall<Message, PreparedMessage>): Failure | undefined {
  const { caller, name } = provenOf(call.metadata);
  const what = caller === undefined ? undefined : check(call.request, caller, name);
  return caller === undefined || what === undefined ? undefined : forbidden(caller, what);
}

function handlerOf(native: NativeContext, name: string, method: DescMethod, handle: unknown, isOpen: boolean): UntypedHandleCall {
  const answer = codecOf(method.output);
  const check = isOpen ? undefined : requestCheckOf(name);
  switch (method.methodKind) {
    case "unary":
      return (call: ServerUnaryCall<Message, PreparedMessage>, callback: sendUnaryData<PreparedMessage>) => {
        const denied = check && deniedBy(check, call);
        if (denied !== undefined) {
          native.onForbidden(call.getPeer(), denied.message);
          callback(toStatus(denied));
          return;
        }
        const { state, finish } = begin(native, call, isOpen, (failure) => callback(toStatus(failure)));
        outcomeOf(() => (handle as UnaryHandler)(call.request, state), name, answer, native.logger).then((outcome) => {
          if (finish()) sendOutcome(callback, outcome);
        });
      };
    case "client_streaming":
      return (call: ServerReadableStream<Message, PreparedMessage>, callback: sendUnaryData<PreparedMessage>) => {
        const { state, finish } = begin(native, call, isOpen, (failure) => callback(toStatus(failure)));
        outcomeOf(() => (handle as StreamIn)(readAll<Message>(call), state), name, answer, native.logger).then((outcome) => {
          if (finish()) sendOutcome(callback, outcome);
        });
      };
    case "server_streaming":
      return (call: ServerWritableStream<Message, PreparedMessage>) => {
        const begun = begin(native, call, isOpen, (failure) => failStream(call, failure));
        void sendAnswers(native, call, () => (handle as StreamOut)(call.request, begun.state), answer, begun, name);
      };
    case "bidi_streaming":
      return (call: ServerDuplexStream<Message, PreparedMessage>) => {
        const begun = begin(native, call, isOpen, (failure) => failStream(call, failure));
        void sendAnswers(native, call, () => (handle as StreamBoth)(readAll<Message>(call), begun.state), answer, begun, name);
      };
  }
}

export function nativeHandlers(native: NativeContext, { service, handlers, open }: ServedService): UntypedServiceImplementation {
  const implementation: UntypedServiceImplementation = {};
  for (const method of service.methods) {
    const handle = (handlers as Record<string, ((...given: unknown[]) => unknown) | undefined>)[method.localName];
    if (handle !== undefined)
      implementation[method.name] = handlerOf(native, methodName(service, method), method, handle.bind(handlers), open === true);
  }
  return implementation;
}
