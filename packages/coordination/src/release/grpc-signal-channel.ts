/**
 * The push channel over gRPC: `stamp.v1.Signals` of Stamp's front-ends.
 *
 * A front-end reaches only those who listen to it. So a signal is published at every address, and a listener is subscribed at one of them,
 * the next one when that is lost.
 */
import { createHmac } from "node:crypto";
import { create, type DescMessage, fromBinary, type MessageInitShape, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { type ChannelCredentials, Client, credentials, Metadata } from "@grpc/grpc-js";
import { PublishRequestSchema, PublishResponseSchema, SubscribeRequestSchema, SubscribeResponseSchema } from "@stamp/wire";
import { requireNumber, UsageError } from "../errors.ts";
import { backoffMs } from "../time/backoff.ts";
import { type Clock, systemClock } from "../time/clock.ts";
import type { SignalChannel, Subscription } from "./signal-channel.ts";

export interface GrpcSignalOptions {
  /** Addresses of the front-ends' gRPC doors, host:port. */
  readonly addresses: readonly string[];
  readonly account: string;
  /** A key of the account, base64: the secret that publishers and listeners share. */
  readonly accountKey: string;
  /** Credentials of the channel (default: no encryption). */
  readonly credentials?: ChannelCredentials;
  /** Longest time for one publication, in milliseconds. Default 5,000. */
  readonly publishTimeoutMs?: number;
  /** Called with each error after which the connection is made again. Must not throw. */
  readonly onError?: (error: unknown) => void;
  readonly clock?: Clock;
}

/** A lost connection is noticed after the time plus the timeout, in milliseconds. */
const keepAlive = { "grpc.keepalive_time_ms": 10_000, "grpc.keepalive_timeout_ms": 5_000 };
/** A subscription is made anew after a day at the latest, in milliseconds. */
const subscriptionMaxMs = 86_400_000;
const reconnect = { firstMs: 250, maxMs: 10_000 };
/** A token is for one call; the clocks of client and server may differ by a part of it. */
const tokenLastsMs = 10 * 60_000;

const encode =
  <D extends DescMessage>(schema: D) =>
  (message: MessageInitShape<D>): Buffer =>
    Buffer.from(toBinary(schema, create(schema, message)));
const decode =
  <D extends DescMessage>(schema: D) =>
  (bytes: Buffer): MessageShape<D> =>
    fromBinary(schema, bytes);

export class GrpcSignalChannel implements SignalChannel {
  readonly #options: GrpcSignalOptions;
  readonly #clients: readonly Client[];
  readonly #clock: Clock;

  constructor(options: GrpcSignalOptions) {
    if (options.addresses.length === 0) throw new UsageError("addresses is empty; give the gRPC address of at least one front-end");
    requireNumber("publishTimeoutMs", options.publishTimeoutMs ?? 5_000, 1, 600_000);
    const secure = options.credentials ?? credentials.createInsecure();
    this.#options = options;
    this.#clients = options.addresses.map((address) => new Client(address, secure, keepAlive));
    this.#clock = options.clock ?? systemClock;
  }

  /** Closes the connections. Subscriptions that are open hear nothing more. */
  close(): void {
    for (const client of this.#clients) client.close();
  }

  async publish(topic: string, signal?: AbortSignal): Promise<number> {
    const answers = await Promise.allSettled(this.#clients.map((client) => this.#publishAt(client, topic, signal)));
    const reached = answers.filter((answer) => answer.status === "fulfilled");
    const failed = answers.filter((answer) => answer.status === "rejected");
    for (const { reason } of failed) this.#options.onError?.(reason);
    if (reached.length === 0)
      throw new AggregateError(
        failed.map(({ reason }) => reason),
        `no front-end took the signal ${topic}`,
      );
    return reached.reduce((sum, { value }) => sum + value, 0);
  }

  #publishAt(client: Client, topic: string, signal: AbortSignal | undefined): Promise<number> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const options = { deadline: Date.now() + (this.#options.publishTimeoutMs ?? 5_000) };
      const request = { account: this.#options.account, topic };
      const call = client.makeUnaryRequest(
        "/stamp.v1.Signals/Publish",
        encode(PublishRequestSchema),
        decode(PublishResponseSchema),
        request,
        this.#metadata(),
        options,
        (error, answer) => {
          signal?.removeEventListener("abort", aborted);
          if (error) reject(signal?.aborted ? signal.reason : error);
          else resolve(answer?.listeners ?? 0);
        },
      );
      const aborted = (): void => call.cancel();
      signal?.addEventListener("abort", aborted, { once: true });
    });
  }

  subscribe(topic: string, onSignal: () => void, onConnected: (connected: boolean) => void = () => {}): Subscription {
    let closed = false;
    let at = Math.floor(this.#clock.random() * this.#clients.length);
    let stop = (): void => {};
    let failures = 0;
    const connect = (): void => {
      const client = this.#clients[at++ % this.#clients.length];
      if (closed || client === undefined) return;
      const call = client.makeServerStreamRequest(
        "/stamp.v1.Signals/Subscribe",
        encode(SubscribeRequestSchema),
        decode(SubscribeResponseSchema),
        { account: this.#options.account, topic },
        this.#metadata(),
        { deadline: Date.now() + subscriptionMaxMs },
      );
      let ended = false;
      const again = (error?: unknown): void => {
        if (ended) return;
        ended = true;
        if (closed) return;
        if (error !== undefined) this.#options.onError?.(error);
        onConnected(false);
        stop = this.#clock.after(backoffMs(this.#clock, reconnect, failures++), connect);
      };
      call.on("data", ({ signals }: MessageShape<typeof SubscribeResponseSchema>) => {
        failures = 0;
        if (closed) return;
        if (signals === 0) onConnected(true);
        else onSignal();
      });
      call.on("error", again);
      call.on("end", () => again());
      stop = () => call.cancel();
    };
    connect();
    return {
      close: () => {
        closed = true;
        stop();
      },
    };
  }

  /** Returns the token that `stamp token` makes. */
  #metadata(): Metadata {
    const { account, accountKey } = this.#options;
    const body = Buffer.from(JSON.stringify({ account, expiresMs: Date.now() + tokenLastsMs })).toString("base64url");
    const key = Buffer.from(accountKey, "base64");
    const signature = createHmac("sha256", key).update(`stamp token v1\n${body}`).digest("base64url");
    const metadata = new Metadata();
    metadata.set("authorization", `Bearer ${body}.${signature}`);
    return metadata;
  }
}
