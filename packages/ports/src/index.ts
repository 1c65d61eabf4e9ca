/**
 * The ports: everything that a role needs of its machine, as types, with the conformance suites that every
 * implementation passes. Start at `World`. An implementation owes what the comments of each port say; roles owe: no
 * other way to time, randomness, disks or sockets.
 */
export { addressesIn, whyNoAddress } from "./address-text.ts";
export { AnswerMemory, type LentMemory } from "./answer-memory.ts";
export { atMost, type Clock, jitteredPause, pause, sleep, type Timer, within } from "./clock.ts";
export { clockConformance } from "./conformance/clock.conformance.ts";
export { check, checkEqual, type RegisterTest } from "./conformance/conformance.ts";
export { digestConformance } from "./conformance/digest.conformance.ts";
export { diskConformance } from "./conformance/disk.conformance.ts";
export { keyValueConformance } from "./conformance/key-value.conformance.ts";
export { transportConformance } from "./conformance/transport.conformance.ts";
export { servedPartly } from "./conformance/transport-under-test.ts";
export type { Digest, RunningCipher, RunningHash } from "./digest.ts";
export { type Disk, DiskError, type DiskErrorKind, type DiskFile, type DiskSpace } from "./disk.ts";
export type { HttpBody, HttpHandler, HttpRefusal, HttpRequest, HttpResponse } from "./http.ts";
export { Leadership } from "./leadership.ts";
export { type LogFields, type Logger, silentLogger } from "./logger.ts";
export { isLoopback } from "./loopback.ts";
export type { TokenCheck, TokenClaims, TokenIssuer } from "./outside/bearer.ts";
export type { ForeignCalls, ForeignServer, ForeignTls } from "./outside/foreign-calls.ts";
export type { HttpClient, IncomingAnswer, OutgoingOptions, OutgoingRequest } from "./outside/http-client.ts";
export type { WrittenFile, WrittenFiles, WrittenJson, WrittenPlace } from "./outside/written-files.ts";
export { jittered, type Random, uuid } from "./random.ts";
export { SlowLog } from "./slow-log.ts";
export {
  CompleteStore,
  type CompleteStoreWorld,
  markPath,
  type OpenCompleteOptions,
  openComplete,
  whyIncomplete,
} from "./stores/complete-store.ts";
export {
  claimFolder,
  decodeFormatMarker,
  encodeFormatMarker,
  type FormatMarker,
  formatMarkerFile,
  hasWritten,
  notedFeatureLevel,
  raiseFeatureLevel,
  raiseFormats,
  refuseNewer,
} from "./stores/format-marker.ts";
export { type Identity, openIdentity } from "./stores/identity.ts";
export type { KeyRange, KeyValue, KeyValueOpen, KeyValueOperation, KeyValueStores } from "./stores/key-value.ts";
export {
  decodeMarkFile,
  decodeProof,
  emptySum,
  encodeMark,
  encodeMarkFile,
  encodeProof,
  markBytes,
  markOffset,
  markSlotBytes,
  type StoreProof,
} from "./stores/store-proof.ts";
export { type Cause, causedBy, causedTogether, causeOf } from "./tracing/cause.ts";
export { ClientTraces } from "./tracing/client-traces.ts";
export { tracedTransport } from "./tracing/traced-transport.ts";
export { collectorUrlShape, collectorUrlText, type SpanFacts, type Tracer, type TraceSpan } from "./tracing/tracer.ts";
export {
  type Address,
  type CallContext,
  type CallOptions,
  type Client,
  type Handlers,
  type Listener,
  type ServedService,
  served,
  servedOpenly,
  type Transport,
} from "./transport.ts";
export { Turns, turnSliceMs } from "./turns.ts";
export type { Role, RoleStatus, SecretFacts, World } from "./world.ts";
