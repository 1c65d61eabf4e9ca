/** Connection of grpc-js to a server outside of the project, with TLS if the server has it. */
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
  ChannelCredentials,
  type CallOptions as GrpcCallOptions,
  Client as GrpcClient,
  logVerbosity,
  Metadata,
  setLogVerbosity,
} from "@grpc/grpc-js";
import { FailureError, type Outcome, ok, refused } from "@stamp/base";
import type { CallOptions, Clock, ForeignServer } from "@stamp/ports";
import { hostAndPort } from "../address.ts";
import { cancelledFailure, timeoutFailure } from "../failures.ts";
import type { PreparedMessage } from "../message-codec.ts";
import { foreignOptions } from "../options.ts";
import { serializePrepared, streamCodec } from "./definitions.ts";
import { fromServiceError } from "./status.ts";
import { readAll, writeAll } from "./streams.ts";

// Errors that grpc-js would print come back as failures and are reported by the caller.
setLogVerbosity(logVerbosity.NONE);

export class ForeignConnection {
  readonly #clock: Clock;
  readonly #client: GrpcClient;
  #closed = false;

  constructor({ address, tls }: ForeignServer, clock: Clock) {
    this.#clock = clock;
    const pem = (text: string | undefined): Buffer | null => (text === undefined ? null : Buffer.from(text));
    const { host } = hostAndPort(address);
    // TLS sends no addresses as names (SNI), and grpc-js would: another name is sent then, and the address is what the certificate must have.
    const byAddress = tls !== undefined && isIP(host) !== 0;
    const verify = byAddress ? { checkServerIdentity: (_name: string, cert: PeerCertificate) => checkServerIdentity(host, cert) } : {};
    const credentials =
      tls === undefined
        ? ChannelCredentials.createInsecure()
        : ChannelCredentials.createSsl(pem(tls.ca), pem(tls.key), pem(tls.cert), verify);
    const named = byAddress ? { "grpc.ssl_target_name_override": "localhost" } : {};
    this.#client = new GrpcClient(address, credentials, { ...foreignOptions, ...named });
  }

  close(): void {
    this.#closed = true;
    this.#client.close();
  }

  method(service: DescService, method: DescMethod): unknown {
    switch (method.methodKind) {
      case "unary":
        return (request: object, options: CallOptions) => this.#unary(service, method, request, options);
      case "bidi_streaming":
        return (requests: AsyncIterable<object>, options: CallOptions) => this.#both(service, method, requests, options);
      default:
        throw new Error(`${method.name}: only unary methods and streams in both directions are called`);
    }
  }

  #unary(service: DescService, method: DescMethod, request: object, options: CallOptions): Promise<Outcome<object>> {
    const codec = streamCodec(service, method);
    const refusal = this.#refusal(codec.path, options);
    if (refusal !== undefined) return Promise.resolve(refusal);
    return new Promise((resolve) => {
      const call = this.#client.makeUnaryRequest<PreparedMessage, object>(
        codec.path,
        serializePrepared,
        (bytes) => codec.answer.decode(bytes),
        codec.request.prepare(request),
        metadataOf(options),
        this.#grpcOptions(options),
        (error, value) => {
          options.signal?.removeEventListener("abort", cancel);
          resolve(error ? { ok: false, failure: fromServiceError(error) } : ok(value as object));
        },
      );
      const cancel = (): void => call.cancel();
      options.signal?.addEventListener("abort", cancel, { once: true });
    });
  }

  async *#both(service: DescService, method: DescMethod, requests: AsyncIterable<object>, options: CallOptions): AsyncIterable<object> {
    const codec = streamCodec(service, method);
    const refusal = this.#refusal(codec.path, options);
    if (refusal !== undefined && !refusal.ok) throw new FailureError(refusal.failure);
    const call = this.#client.makeBidiStreamRequest<PreparedMessage, object>(
      codec.path,
      serializePrepared,
      (bytes) => codec.answer.decode(bytes),
      metadataOf(options),
      this.#grpcOptions(options),
    );
    const finished = new AbortController();
    const cancel = (): void => call.cancel();
    options.signal?.addEventListener("abort", cancel, { once: true });
    writeAll(call, requests, codec.request, finished.signal).then(
      (complete) => {
        if (complete) call.end();
      },
      () => call.cancel(),
    );
    try {
      yield* readAll<object>(call);
    } finally {
      finished.abort();
      options.signal?.removeEventListener("abort", cancel);
      call.on("error", () => {});
      call.cancel();
    }
  }

  #refusal(path: string, options: CallOptions): Outcome<never> | undefined {
    if (this.#closed) return refused("unavailable", "stopping", "these connections are closed");
    if (options.signal?.aborted) return { ok: false, failure: cancelledFailure("no", path) };
    if (!(options.timeoutMs > 0)) return { ok: false, failure: timeoutFailure("no", path) };
    return undefined;
  }

  #grpcOptions({ timeoutMs }: CallOptions): GrpcCallOptions {
    return { deadline: new Date(Math.ceil(this.#clock.wallMs() + timeoutMs)) };
  }
}

function metadataOf(options: CallOptions): Metadata {
  const metadata = new Metadata();
  for (const [key, value] of Object.entries(options.metadata ?? {})) metadata.set(key, value);
  return metadata;
}
