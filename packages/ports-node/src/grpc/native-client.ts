/** Streaming methods of one address over plain gRPC, on one connection of their own. */
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import type { CallOptions as GrpcCallOptions, ServiceError } from "@grpc/grpc-js";
import { Client, Metadata } from "@grpc/grpc-js";
import type { Outcome } from "@stamp/base";
import { FailureError, refused } from "@stamp/base";
import type { CallOptions, Clock } from "@stamp/ports";
import type { StreamCodec } from "./definitions.ts";
import { serializePrepared, streamCodec } from "./definitions.ts";
import { cancelledFailure, fromServiceError, timeoutFailure } from "./failures.ts";
import type { Prepared } from "./message-codec.ts";
import type { GrpcLimits } from "./options.ts";
import { clientCredentials, clientOptions } from "./options.ts";
import { readAll, writeAll } from "./streams.ts";

const metadataOf = (options: CallOptions): Metadata => {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(options.metadata ?? {})) metadata.set(key, value);
  return metadata;
};

export class NativeClient {
  readonly #clock: Clock;
  readonly #client: Client;
  #closed = false;

  constructor(address: string, limits: GrpcLimits, clock: Clock) {
    this.#clock = clock;
    this.#client = new Client(address, clientCredentials(), clientOptions(limits));
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
        throw new Error("unary methods travel over the bus");
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

  #grpcOptions(options: CallOptions): GrpcCallOptions {
    return { deadline: new Date(Math.ceil(this.#clock.wallMs() + options.timeoutMs)) };
  }

  async *#serverStream(codec: StreamCodec, request: object, options: CallOptions): AsyncIterable<object> {
    const refusal = this.#refusal(codec, options);
    if (refusal && !refusal.ok) throw new FailureError(refusal.failure);
    const call = this.#client.makeServerStreamRequest(
      codec.path,
      serializePrepared,
      (bytes: Buffer) => codec.answer.decode(bytes),
      codec.request.prepare(request),
      metadataOf(options),
      this.#grpcOptions(options),
    );
    const cancel = (): void => call.cancel();
    options.signal?.addEventListener("abort", cancel, { once: true });
    try {
      yield* readAll<object>(call);
    } finally {
      options.signal?.removeEventListener("abort", cancel);
      // After the end it does nothing. A cancelled call still reports its status; nobody is left to hear it.
      call.on("error", () => {});
      call.cancel();
    }
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
      const call = this.#client.makeClientStreamRequest<Prepared, object>(
        codec.path,
        serializePrepared,
        (bytes) => codec.answer.decode(bytes),
        metadataOf(options),
        this.#grpcOptions(options),
        (error, value) => settle(error ? { ok: false, failure: fromServiceError(error) } : { ok: true, value: value as object }),
      );
      const cancel = (): void => call.cancel();
      options.signal?.addEventListener("abort", cancel, { once: true });
      call.on("error", () => {});
      writeAll(call, requests, codec.request, finished.signal).then(
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
    const call = this.#client.makeBidiStreamRequest<Prepared, object>(
      codec.path,
      serializePrepared,
      (bytes) => codec.answer.decode(bytes),
      metadataOf(options),
      this.#grpcOptions(options),
    );
    const finished = new AbortController();
    const cancel = (): void => call.cancel();
    options.signal?.addEventListener("abort", cancel, { once: true });
    let sourceError: unknown;
    writeAll(call, requests, codec.request, finished.signal).then(
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
