/**
 * Calls to servers that are no processes of the stamp, such as etcd, over ordinary gRPC. They never carry the secret of the stamp. Methods are
 * unary, or streams in both directions. A failure carries the server's own words in `message`.
 */
import type { DescService } from "@bufbuild/protobuf";
import type { Address, Client } from "../transport.ts";

/** Contents of the PEM files of a certificate and its authority. */
export interface ForeignTls {
  /** Authorities that the server's certificate is checked against. */
  readonly ca: string;
  /** Certificate and key that the caller shows; both or none. */
  readonly cert?: string;
  readonly key?: string;
}

export interface ForeignServer {
  readonly address: Address;
  /** Certificates for the connection; undefined: it is not encrypted. */
  readonly tls?: ForeignTls | undefined;
}

export interface ForeignCalls {
  /** Returns a client of the service at this server. Connections are made on first use, kept, and shared by all clients of one server. */
  client<S extends DescService>(server: ForeignServer, service: S): Client<S>;
  close(): Promise<void>;
}
