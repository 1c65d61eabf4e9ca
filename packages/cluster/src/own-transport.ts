/** The gRPC transport of tools: supervisor, command line. */
import { GrpcTransport } from "@stamp/ports-node";

export const ownTransport = (): GrpcTransport => new GrpcTransport();
