/**
 * Calls between processes, over the services of proto/stamp/v1. Three ways, one handler each:
 *
 *   call    a request and an answer. All calls to one address travel in order, pipelined, on one long-lived connection per lane; what
 *           becomes ready in one tick travels together. A later call is never delivered before an earlier one of the same lane, but
 *           either may be lost with the connection: then its outcome is `unknown`.
 *   stream  many requests and/or many answers, each side slowed down by the other.
 *   bulk    a call whose message has a field named `payload` (`bytes` or `repeated bytes`): these bytes are carried without being
 *           re-encoded. They travel in the lane `bulk`, so that they never stand before small calls.
 *
 * Messages are borrowed by both sides: nobody changes one that was sent or received. A received `payload` may be a view of a larger
 * buffer: copy it when keeping a small part of it.
 *
 * A deadline travels as what is left of it and becomes a local one on arrival. Whoever awaits a call gets an answer by then, always.
 */
import type {
  DescMethodBiDiStreaming,
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { Outcome } from "@stamp/base";

/** `host:port` over gRPC; a process's name in process and in the simulator. */
export type Address = string;

export interface CallOptions {
  /** Rest of the caller's deadline, in milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Facts that a handler has about its call. */
export interface CallContext {
  /** Time by this process's monotonic clock. */
  readonly deadlineMs: number;
  /** Aborted when the caller cancelled or went away, or the deadline passed. Made when it is asked for: `aborted` costs nothing. */
  readonly signal: AbortSignal;
  /** Whether that has happened. */
  readonly aborted: boolean;
  readonly peer: string;
  /** Role of the caller, as its connection says or proves it (`Caller` of @stamp/wire); undefined if it says none. */
  readonly caller?: string | undefined;
  /** Name of the caller that its certificate proves: of a process, or of another stamp; undefined without TLS. */
  readonly callerName?: string | undefined;
  readonly metadata: Readonly<Record<string, string>>;
  /**
   * Gives the memory of the request's payload back to the transport, which uses it again at once. A handler may call it once, when neither it
   * nor anyone that it gave the payload to has a view of these bytes or will look at one. It need not: then they are freed as any other.
   * Undefined where the transport does not use memory again.
   */
  readonly giveBackPayload?: (() => void) | undefined;
  /**
   * Takes a function that is called when the system has taken the answer: nobody looks at large bytes of it any more. A handler may
   * say it once, before it answers. The function is never called if the answer did not leave whole. Undefined where the transport can't tell.
   */
  readonly whenSent?: ((sent: () => void) => void) | undefined;
  /**
   * For an open service: tells that the handler has authorized its caller. A connection without an authorized call
   * gives way to others when there are many. Undefined where connections prove themselves otherwise.
   */
  readonly authorized?: () => void;
}

export type Client<S extends DescService> = {
  readonly [K in keyof S["method"]]: S["method"][K] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageInitShape<I>, options: CallOptions) => Promise<Outcome<MessageShape<O>>>
    : S["method"][K] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageInitShape<I>, options: CallOptions) => AsyncIterable<MessageShape<O>>
      : S["method"][K] extends DescMethodClientStreaming<infer I, infer O>
        ? (requests: AsyncIterable<MessageInitShape<I>>, options: CallOptions) => Promise<Outcome<MessageShape<O>>>
        : S["method"][K] extends DescMethodBiDiStreaming<infer I, infer O>
          ? (requests: AsyncIterable<MessageInitShape<I>>, options: CallOptions) => AsyncIterable<MessageShape<O>>
          : never;
};

/** Handlers of a service. Streams of answers may throw `FailureError`; anything else thrown is a bug of ours (`internal`, logged). */
export type Handlers<S extends DescService> = {
  readonly [K in keyof S["method"]]: S["method"][K] extends DescMethodUnary<infer I, infer O>
    ? (request: MessageShape<I>, context: CallContext) => Promise<Outcome<MessageInitShape<O>>>
    : S["method"][K] extends DescMethodServerStreaming<infer I, infer O>
      ? (request: MessageShape<I>, context: CallContext) => AsyncIterable<MessageInitShape<O>>
      : S["method"][K] extends DescMethodClientStreaming<infer I, infer O>
        ? (requests: AsyncIterable<MessageShape<I>>, context: CallContext) => Promise<Outcome<MessageInitShape<O>>>
        : S["method"][K] extends DescMethodBiDiStreaming<infer I, infer O>
          ? (requests: AsyncIterable<MessageShape<I>>, context: CallContext) => AsyncIterable<MessageInitShape<O>>
          : never;
};

export interface ServedService {
  readonly service: DescService;
  // biome-ignore lint/suspicious/noExplicitAny: a list of services of different types; `served` checks each.
  readonly handlers: Handlers<any>;
  /** True if callers need not know the secret of the stamp: the handlers authorize each call, or there is nothing to protect. */
  readonly open?: boolean;
}

/** Pairs a service with its handlers, and checks their types. */
export const served = <S extends DescService>(service: S, handlers: Handlers<S>): ServedService => ({ service, handlers });

/** Serves like `served`, for callers that do not know the stamp's secret. */
export const servedOpenly = <S extends DescService>(service: S, handlers: Handlers<S>): ServedService => ({
  service,
  handlers,
  open: true,
});

export interface Listener {
  /** Address with the port that was bound when 0 was asked for. */
  readonly address: Address;
  /** Takes no new calls; cancels those in progress after `graceMs`, and returns how many it cancelled. */
  close(graceMs?: number): Promise<number>;
}

export interface Transport {
  /** Returns a client of the service at this address. Cheap; connections are made on first use, kept, and shared by all clients of an address. */
  client<S extends DescService>(address: Address, service: S): Client<S>;
  /** Serves at `listen` (`host:port`, port 0 for any; a name in process and in the simulator). Handlers start in order of arrival. */
  serve(listen: Address, services: readonly ServedService[]): Promise<Listener>;
  /**
   * True if messages are passed by reference: a receiver may hold the bytes of a request when the call is over. Otherwise they are the caller's
   * again as soon as the call has succeeded; after a failure a connection may still hold them.
   */
  readonly sharesMessages?: boolean;
  /**
   * Gives the memory of an answer back, which is used again at once. `held`: the payload that the answer had, or an answer without a payload
   * field itself. A caller may do so when nobody has a view of any bytes of the answer or will look at one. It need not: then they are freed as
   * any other. Undefined where the transport does not use memory again.
   */
  readonly giveBack?: ((held: object) => void) | undefined;
  /** Closes every connection that this transport opened. Calls that it has sent and that are in progress end as unknown. */
  close(): Promise<void>;
}
