/** Methods of one address over ordinary gRPC, on one connection of their own. */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { CallOptions as GrpcCallOptions, ServiceError } from "@grpc/grpc-js";
import { Client, Metadata } from "@grpc/grpc-js";
import type { Outcome } from "@stamp/base";
import { FailureError, refused } from "@stamp/base";
import type { CallOptions, Clock } from "@stamp/ports";
import { hostAndPort } from "../address.ts";
import { type Credential, proofKey, tokenKey } from "../credentials/credential.ts";
import type { PeerTls } from "../credentials/peer-tls.ts";
import { cancelledFailure, timeoutFailure } from "../failures.ts";
import type { PreparedMessage } from "../message-codec.ts";
import type { GrpcLimits } from "../options.ts";
import { clientOptions } from "../options.ts";
import type { StreamCodec } from "./definitions.ts";
import { serializePrepared, streamCodec } from "./definitions.ts";
import { clientCredentials, secured } from "./grpc-credentials.ts";
import { fromServiceError } from "./status.ts";
import { readAll, writeAll } from "./streams.ts";

interface Proof {
  readonly metadata: Metadata;
  /** Resolves to true when the server has proven itself, to false when it did not, or when the signal came first. */
  readonly by: (call: ProvingCall, signal: AbortSignal) => Promise<boolean>;
}

interface ProvingCall {
  once(event: "metadata", listener: (answer: Metadata) => void): unknown;
}

/** Tells the maker of requests that none will be taken. */
const neverAsked = async (requests: AsyncIterable<object>): Promise<void> => void (await requests[Symbol.asyncIterator]().return?.());

async function* one(request: object): AsyncIterable<object> {
  yield request;
}

const unproven: FailureError["failure"] = {
  code: "unauthenticated",
  reason: "unauthorized",
  message: "the server does not know the secret of this stamp",
  applied: "no",
};

export class NativeClient {
  readonly #clock: Clock;
  readonly #client: Client;
  readonly #credential: () => Credential;
  readonly #port: number;
  #closed = false;

  constructor(address: string, limits: GrpcLimits, clock: Clock, credential: () => Credential, tls: PeerTls | undefined) {
    this.#clock = clock;
    this.#credential = credential;
    this.#port = hostAndPort(address).port;
    this.#client = new Client(address, clientCredentials(tls), secured(clientOptions(limits), tls));
  }

  method(service: DescService, method: DescMethod): unknown {
    const codec = streamCodec(service, method);
    switch (method.methodKind) {
      case "server_streaming":
        return (request: object, options: CallOptions) => this.#serverStream(codec, request, options);
      case "client_streaming":
        return (requests: AsyncIterable<object>, options: CallOptions) => this.#clientStream(codec, requests, options);
      case "bidi_streaming":
        return (requests: AsyncIterable<object>, options: CallOptions) => this.#bothStream(codec, requests, options);
      case "unary":
        // A stream of one request is the same to the server.
        return (request: object, options: CallOptions) => this.#clientStream(codec, one(request), options);
    }
  }

  close(): void {
    this.#closed = true;
    this.#client.close();
  }

  #refusal(codec: StreamCodec, options: CallOptions): Outcome<never> | undefined {
    if (this.#closed) return refused("unavailable", "stopping", "this transport is closed");
    if (options.signal?.aborted) return { ok: false, failure: cancelledFailure("no", codec.path) };
    if (!(options.timeoutMs > 0)) return { ok: false, failure: timeoutFailure("no", codec.path) };
    return undefined;
  }

  #proof(options: CallOptions): Proof {
    const credential = this.#credential();
    const token = credential.tokenFor(this.#port);
    const metadata = new Metadata();
    for (const [key, value] of Object.entries(options.metadata ?? {})) metadata.set(key, value);
    metadata.set(tokenKey, token.text);
    if (credential.open) return { metadata, by: () => Promise.resolve(true) };
    const by: Proof["by"] = (call, signal) =>
      new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve(false), { once: true });
        call.once("metadata", (answer) => resolve(token.provenBy(String(answer.get(proofKey)[0] ?? ""))));
      });
    return { metadata, by };
  }

  #grpcOptions(options: CallOptions): GrpcCallOptions {
    return { deadline: new Date(Math.ceil(this.#clock.wallMs() + options.timeoutMs)) };
  }

  async *#serverStream(codec: StreamCodec, request: object, options: CallOptions): AsyncIterable<object> {
    // One request, sent as a stream of one: so that nothing of it leaves before the server has proven itself.
    yield* this.#bothStream(codec, one(request), options);
  }

  #clientStream(codec: StreamCodec, requests: AsyncIterable<object>, options: CallOptions): Promise<Outcome<object>> {
    const refusal = this.#refusal(codec, options);
    if (refusal) return Promise.resolve(refusal);
    return new Promise((resolve) => {
      const finished = new AbortController();
      const settle = (outcome: Outcome<object>): void => {
        finished.abort();
        options.signal?.removeEventListener("abort", cancel);
        resolve(outcome);
      };
      const proof = this.#proof(options);
      const call = this.#client.makeClientStreamRequest<PreparedMessage, object>(
        codec.path,
        serializePrepared,
        (bytes) => codec.answer.decode(bytes),
        proof.metadata,
        this.#grpcOptions(options),
        (error, value) => settle(error ? { ok: false, failure: fromServiceError(error) } : { ok: true, value: value as object }),
      );
      const cancel = (): void => call.cancel();
      options.signal?.addEventListener("abort", cancel, { once: true });
      call.on("error", () => {});
      const written = proof.by(call, finished.signal).then(async (proven) => {
        if (proven) return writeAll(call, requests, codec.request, finished.signal);
        await neverAsked(requests);
        if (finished.signal.aborted) return false;
        settle({ ok: false, failure: unproven });
        call.cancel();
        return false;
      });
      written.then(
        (complete) => {
          if (complete) call.end();
        },
        (error: unknown) => {
          const failure = error instanceof FailureError ? error.failure : sourceFailure(codec, error);
          settle({ ok: false, failure: { ...failure, applied: "unknown" } });
          call.cancel();
        },
      );
    });
  }

  async *#bothStream(codec: StreamCodec, requests: AsyncIterable<object>, options: CallOptions): AsyncIterable<object> {
    const refusal = this.#refusal(codec, options);
    if (refusal && !refusal.ok) throw new FailureError(refusal.failure);
    const proof = this.#proof(options);
    const call = this.#client.makeBidiStreamRequest<PreparedMessage, object>(
      codec.path,
      serializePrepared,
      (bytes) => codec.answer.decode(bytes),
      proof.metadata,
      this.#grpcOptions(options),
    );
    const finished = new AbortController();
    const cancel = (): void => call.cancel();
    options.signal?.addEventListener("abort", cancel, { once: true });
    let sourceError: unknown;
    const written = proof.by(call, finished.signal).then(async (proven) => {
      if (proven) return writeAll(call, requests, codec.request, finished.signal);
      await neverAsked(requests);
      throw new FailureError(unproven);
    });
    written.then(
      (complete) => {
        if (complete) call.end();
      },
      (error: unknown) => {
        sourceError = error;
        call.cancel();
      },
    );
    try {
      yield* readAll<object>(call);
    } catch (error) {
      if (sourceError === undefined) throw error;
      throw sourceError instanceof FailureError ? sourceError : new FailureError(sourceFailure(codec, sourceError));
    } finally {
      finished.abort();
      options.signal?.removeEventListener("abort", cancel);
      call.on("error", () => {});
      call.cancel();
    }
  }
}

const sourceFailure = (codec: StreamCodec, error: unknown): FailureError["failure"] => ({
  code: "internal",
  reason: "bug",
  message: `the requests of ${codec.path} failed: ${String((error as ServiceError).message ?? error)}`,
  applied: "unknown",
});
