/** Bus frames as messages of a gRPC stream in both directions: `stamp.v1.Bus/Connect`. */
import type { ClientDuplexStream, ServerDuplexStream, ServiceError } from "@grpc/grpc-js";
import { Client, Metadata, status } from "@grpc/grpc-js";
import { hostAndPort } from "../address.ts";
import { type Credential, proofKey, tokenKey } from "../credentials/credential.ts";
import type { PeerTls } from "../credentials/peer-tls.ts";
import { clientCredentials, secured } from "../native/grpc-credentials.ts";
import { clientOptions, type GrpcLimits } from "../options.ts";
import type { FrameLink, LinkEnd, LinkEvents } from "./frame-link.ts";

const connectPath = "/stamp.v1.Bus/Connect";
const asIs = (bytes: Buffer): Buffer => bytes;

abstract class GrpcLink implements FrameLink {
  readonly headBytes = 0;
  /** A message of gRPC is one buffer. */
  readonly referencedFromBytes: number = Number.POSITIVE_INFINITY;
  abstract readonly stream: ClientDuplexStream<Buffer, Buffer> | ServerDuplexStream<Buffer, Buffer>;

  write(parts: readonly Buffer[], written: (error?: Error | null) => void): void {
    this.stream.write(parts[0] as Buffer, written);
  }

  pause(): void {
    this.stream.pause();
  }

  resume(): void {
    this.stream.resume();
  }

  abstract end(why?: LinkEnd): void;
  abstract destroy(): void;
}

export class GrpcClientLink extends GrpcLink {
  readonly #client: Client;
  readonly stream: ClientDuplexStream<Buffer, Buffer>;

  constructor(address: string, limits: GrpcLimits, credential: Credential, tls: PeerTls | undefined, events: LinkEvents) {
    super();
    this.#client = new Client(address, clientCredentials(tls), secured(clientOptions(limits), tls));
    const token = credential.tokenFor(hostAndPort(address).port);
    const metadata = new Metadata();
    metadata.set(tokenKey, token.text);
    this.stream = this.#client.makeBidiStreamRequest<Buffer, Buffer>(connectPath, asIs, asIs, metadata, {});
    this.stream.on("metadata", (answer: Metadata) => {
      if (credential.open || token.provenBy(String(answer.get(proofKey)[0] ?? ""))) events.open();
      else events.closed("the server does not know the secret of this stamp", true);
    });
    this.stream.on("data", (frame: Buffer) => events.frame(frame));
    this.stream.on("error", (error: ServiceError) => events.closed(error.details || error.message, error.code === status.UNAUTHENTICATED));
    this.stream.on("end", () => events.closed("the peer closed it"));
  }

  end(): void {
    this.destroy();
  }

  destroy(): void {
    this.stream.cancel();
    this.#client.close();
  }
}

const ends: Readonly<Record<LinkEnd, { readonly code: status; readonly details: string }>> = {
  stopping: { code: status.UNAVAILABLE, details: "the service is stopping" },
  malformed: { code: status.INVALID_ARGUMENT, details: "malformed frame" },
};

export class GrpcServerLink extends GrpcLink {
  readonly stream: ServerDuplexStream<Buffer, Buffer>;

  constructor(stream: ServerDuplexStream<Buffer, Buffer>, events: LinkEvents) {
    super();
    this.stream = stream;
    stream.on("data", (frame: Buffer) => events.frame(frame));
    for (const event of ["end", "cancelled", "error"]) stream.on(event, () => events.closed(event));
    // The caller may send as soon as it has these headers.
    stream.sendMetadata(new Metadata());
  }

  end(why?: LinkEnd): void {
    if (why !== undefined) this.stream.emit("error", ends[why]);
    this.stream.end();
  }

  destroy(): void {
    this.stream.end();
  }
}
