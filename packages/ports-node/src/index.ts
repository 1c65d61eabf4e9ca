/**
 * The ports on Node, and what every process needs around them: configuration, logs, metrics, start and stop
 * (`runService`). The only home of `node:fs`, timers, sockets and native packages. Only `main.ts` of a service,
 * launchers and tests import it.
 */
export { readPair, type TlsFiles } from "./certificates.ts";
export * from "./clock.ts";
export * from "./cluster-secret.ts";
export * from "./config.ts";
export * from "./digest.ts";
export * from "./disk.ts";
export type { Credential } from "./grpc/credential.ts";
export { NodeForeignCalls } from "./grpc/foreign-calls.ts";
export type { GrpcLimits } from "./grpc/options.ts";
export { defaultLimits } from "./grpc/options.ts";
export { type PeerName, type PeerTls, parsePeerUri, peerUri } from "./grpc/peer-tls.ts";
export { openCredential, proofIdOfSecret, SecretCredential } from "./grpc/secret-credential.ts";
export * from "./grpc/transport.ts";
export * from "./health.ts";
export { NodeHttpClient, type NodeHttpClientOptions } from "./http-client.ts";
export * from "./http-limits.ts";
export * from "./http-server.ts";
export { InProcessNetwork } from "./in-process.ts";
export { inWords, isSystemError } from "./in-words.ts";
export * from "./key-value.ts";
export * from "./logger.ts";
export * from "./master-key.ts";
export { metricsText } from "./metrics.ts";
export * from "./oidc.ts";
export { PeerCertificates, type PeerFiles, readPeerTls } from "./peer-certificates.ts";
export * from "./random.ts";
export * from "./run-service.ts";
export * from "./secret-rotation.ts";
export * from "./watched-secret.ts";
export * from "./world.ts";
