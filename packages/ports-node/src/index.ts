/**
 * The ports on Node, and what every process needs around them: configuration, logs, metrics, start and stop
 * (`runService`). The only home of `node:fs`, timers, sockets and native packages. Only `main.ts` of a service,
 * launchers and tests import it.
 */

export * from "./clock.ts";
export * from "./digest.ts";
export * from "./disk/disk.ts";
export * from "./disk/key-value.ts";
export type { Credential } from "./grpc/credentials/credential.ts";
export { type PeerName, type PeerTls, parsePeerUri, peerUri } from "./grpc/credentials/peer-tls.ts";
export { openCredential, proofIdOfSecret, SecretCredential } from "./grpc/credentials/secret-credential.ts";
export { NodeForeignCalls } from "./grpc/foreign-calls.ts";
export type { GrpcLimits } from "./grpc/options.ts";
export { defaultLimits } from "./grpc/options.ts";
export * from "./grpc/transport.ts";
export { NodeHttpClient, type NodeHttpClientOptions } from "./http/http-client.ts";
export * from "./http/http-limits.ts";
export * from "./http/http-server.ts";
export { InProcessNetwork } from "./in-process.ts";
export { assertAllRules } from "./process/assert-all-rules.ts";
export * from "./process/config.ts";
export * from "./process/health.ts";
export { inWords, isSystemError } from "./process/in-words.ts";
export * from "./process/logger.ts";
export { metricsText } from "./process/metrics.ts";
export * from "./process/run-service.ts";
export * from "./random.ts";
export { readPair, type TlsFiles } from "./secrets/certificates.ts";
export * from "./secrets/cluster-secret.ts";
export * from "./secrets/master-key.ts";
export * from "./secrets/master-key-rotation.ts";
export * from "./secrets/oidc.ts";
export { PeerCertificates, type PeerFiles, readPeerTls } from "./secrets/peer-certificates.ts";
export * from "./secrets/secret-rotation.ts";
export { WatchedMasterKey } from "./secrets/watched-master-key.ts";
export * from "./secrets/watched-secret.ts";
export * from "./world.ts";
