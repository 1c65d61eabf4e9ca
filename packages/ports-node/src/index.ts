/**
 * The ports on Node, and what every process needs around them: configuration, logs, metrics, start and stop
 * (`runService`). The only home of `node:fs`, timers, sockets and native packages. Only `main.ts` of a service,
 * launchers and tests import it.
 */
export { NodeClock } from "./clock.ts";
export { NodeDigest } from "./digest.ts";
export { NodeDisk } from "./disk/disk.ts";
export { NodeKeyValueStores } from "./disk/key-value.ts";
export type { Credential } from "./grpc/credentials/credential.ts";
export {
  geoPeerSecretOf,
  isDerivedSecret,
  locationSecretOf,
  sharedPeerSecretOf,
  stampNamedBy,
} from "./grpc/credentials/derived-secrets.ts";
export { type PeerName, type PeerTls, peerUri } from "./grpc/credentials/peer-tls.ts";
export { SecretCredential, toolTokenMsMax } from "./grpc/credentials/secret-credential.ts";
export { NodeForeignCalls } from "./grpc/foreign-calls.ts";
export { OrdinaryGrpc } from "./grpc/native/ordinary-grpc.ts";
export { geoPeerFile, peerTransports } from "./grpc/peer-transports.ts";
export { GrpcTransport } from "./grpc/transport.ts";
export { NodeHttpClient } from "./http/http-client.ts";
export { type HttpListener, serveHttp } from "./http/http-server.ts";
export { InProcessNetwork } from "./in-process.ts";
export { assertAllRules } from "./process/assert-all-rules.ts";
export { ConfigError, describeKeys, loadConfig, nearestName, textAs, unknownNames, wrongValue } from "./process/config.ts";
export { inWords, isSystemError } from "./process/in-words.ts";
export { metricsText } from "./process/metrics.ts";
export { runService } from "./process/run-service.ts";
export { withSourcePlaces } from "./process/source-places.ts";
export { nodeWrittenFiles } from "./process/written-files.ts";
export { linesOfWrittenJson, parseWrittenJson } from "./process/written-json.ts";
export { NodeRandom } from "./random.ts";
export { readPair } from "./secrets/certificates.ts";
export { credentialOf, makeSecretFile, type SecretFiles, secretFilesBeside, secretsOf } from "./secrets/cluster-secret.ts";
export { isWholeSecret, locationCredential } from "./secrets/given-secrets.ts";
export {
  type IssuedToken,
  issuedTokenOf,
  issuedTokens,
  issuedTokensBeside,
  noteIssuedToken,
  revokeIssuedToken,
} from "./secrets/issued-tokens.ts";
export {
  goneText,
  type MasterKeyFiles,
  makeMasterKeyFile,
  makeMasterKeyOnce,
  masterKeyFilesBeside,
  masterKeyFilesOf,
  masterKeyId,
  masterKeyIdFile,
  masterKeysOf,
} from "./secrets/master-key.ts";
export {
  addNextMasterKey,
  dropNextMasterKey,
  forgetPreviousMasterKey,
  type MasterKeyState,
  masterKeyState,
  useNextMasterKey,
} from "./secrets/master-key-rotation.ts";
export { oidcIssuer } from "./secrets/oidc.ts";
export { PeerCertificates, type PeerFiles, readPeerTls } from "./secrets/peer-certificates.ts";
export {
  addNextSecret,
  dropNextSecret,
  dropPreviousSecret,
  type RotationState,
  rotationState,
  useNextSecret,
} from "./secrets/secret-rotation.ts";
export { WatchedMasterKey } from "./secrets/watched-master-key.ts";
export { untilRoundMs } from "./time/rounds.ts";
export { type OtlpTracer, otlpTracer } from "./tracing/otlp.ts";
export { nodeWorld } from "./world.ts";
