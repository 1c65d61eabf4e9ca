/** Bounds of a door of HTTP (http-server.ts), in memory and time. */
export interface HttpLimits {
  readonly headerBytesMax: number;
  /** Bytes of all heads that have not come to their end: beyond, the address that holds most loses its largest connections. */
  readonly headBytesMax: number;
  /** Most open connections of the port. At this number one of the address with most gives way to a new one (@stamp/base, connection-places.ts). */
  readonly connectionsMax: number;
  /** Connections from one address at most: beyond, its own oldest idle one gives way. */
  readonly connectionsPerAddressMax: number;
  /**
   * Requests of one connection that have no answer yet. One more is answered 503 in its turn, and the connection ends with that: a client that
   * sends thousands ahead would hold as many places as thousands of clients. Requests behind that one are not served.
   */
  readonly pipelinedMax: number;
  /** Requests of all connections that are not served, and held until their connections end. One more ends its connection at once. */
  readonly ignoredMax: number;
  /** Time within which the whole header of a request must be there, in milliseconds. */
  readonly headerTimeoutMs: number;
  /** How long a connection without a request is kept. */
  readonly keepAliveTimeoutMs: number;
  /** Time without a byte inside of a request after which the connection is closed, in milliseconds. */
  readonly idleTimeoutMs: number;
  /** Average rate at which a client has to send a body and take an answer while the server waits for it, in bytes in a second; 0: any. */
  readonly leastBytesPerSecond: number;
  /** Time that a client may stand still before its rate counts, in milliseconds. */
  readonly leastRateWindowMs: number;
  /** Bytes of an unread body that are read and dropped to keep the connection, or to let the client read its answer. */
  readonly drainBytesMax: number;
  readonly drainTimeoutMs: number;
}

export const defaultHttpLimits: HttpLimits = {
  headerBytesMax: 64 * 1024,
  headBytesMax: 32 * 1024 * 1024,
  connectionsMax: 16_384,
  connectionsPerAddressMax: 8_192,
  pipelinedMax: 16,
  ignoredMax: 8_192,
  headerTimeoutMs: 30_000,
  keepAliveTimeoutMs: 75_000,
  idleTimeoutMs: 120_000,
  leastBytesPerSecond: 1_024,
  leastRateWindowMs: 60_000,
  drainBytesMax: 64 * 1024 * 1024,
  drainTimeoutMs: 20_000,
};
