/** Limits of the transport, and the options of grpc-js that follow from them. */
import type { ChannelOptions } from "@grpc/grpc-js";

export interface GrpcLimits {
  /** Largest encoded message, in bytes. */
  readonly messageBytesMax: number;
  /** Length in bytes at which a frame is closed; a single message may be larger. */
  readonly frameBytes: number;
  /** Handed to the connection and not yet written to the socket; the rest waits and grows the next frame. */
  readonly writingBytesMax: number;
  /** Calls waiting at the sender of one connection; beyond it they are refused with `overloaded`. */
  readonly queuedBytesMax: number;
  readonly queuedCallsMax: number;
  /** Calls of one connection that are handled at a time; beyond it the receiver stops reading. */
  readonly inFlightCallsMax: number;
  readonly inFlightBytesMax: number;
  readonly connectTimeoutMs: number;
  /** Pause before a connection is tried again: from, to. */
  readonly reconnectMinMs: number;
  readonly reconnectMaxMs: number;
  readonly keepAliveEveryMs: number;
  readonly keepAliveTimeoutMs: number;
  /** Time within which a connection has to prove its secret, in milliseconds. */
  readonly proveTimeoutMs: number;
  /** Connections that have not, at a listening port; HTTP/2 and plain ones each. */
  readonly unprovenMax: number;
  readonly windowBytes: number;
  /** Memory of large frames that is kept for the next ones, in bytes over all connections of a listening port; 0: none. */
  readonly reusedBytesMax: number;
  /**
   * Memory of large answers that is kept for the next ones, in bytes over all connections of a transport. What nobody needs is let go after
   * seconds. None if `reusedBytesMax` is 0.
   */
  readonly reusedAnswerBytesMax: number;
  /** Deadline for calls of plain gRPC that come without one, in milliseconds. */
  readonly defaultTimeoutMs: number;
}

const kib = 1024;
const mib = 1024 * kib;

export const defaultLimits: GrpcLimits = {
  messageBytesMax: 16 * mib,
  frameBytes: 1 * mib,
  writingBytesMax: 4 * mib,
  queuedBytesMax: 64 * mib,
  queuedCallsMax: 65_536,
  inFlightCallsMax: 1024,
  inFlightBytesMax: 32 * mib,
  connectTimeoutMs: 2_000,
  reconnectMinMs: 20,
  reconnectMaxMs: 100,
  keepAliveEveryMs: 5_000,
  keepAliveTimeoutMs: 5_000,
  proveTimeoutMs: 5_000,
  unprovenMax: 256,
  windowBytes: 8 * mib,
  reusedBytesMax: 8 * mib,
  reusedAnswerBytesMax: 32 * mib,
  defaultTimeoutMs: 60_000,
};

/** Returns the bound of a received frame: `frameBytes` and one message more. */
export const receiveBytesMax = (limits: GrpcLimits): number => limits.messageBytesMax + limits.frameBytes + 64 * kib;

export const clientOptions = (limits: GrpcLimits): ChannelOptions => ({
  "grpc.max_receive_message_length": receiveBytesMax(limits),
  "grpc.max_send_message_length": -1,
  "grpc.keepalive_time_ms": limits.keepAliveEveryMs,
  "grpc.keepalive_timeout_ms": limits.keepAliveTimeoutMs,
  "grpc.keepalive_permit_without_calls": 1,
  "grpc.initial_reconnect_backoff_ms": limits.reconnectMinMs,
  "grpc.max_reconnect_backoff_ms": limits.reconnectMaxMs,
  // A connection of our own per client: lanes must not share one.
  "grpc.use_local_subchannel_pool": 1,
  // Whoever calls decides what is tried again.
  "grpc.enable_retries": 0,
  "grpc.service_config_disable_resolution": 1,
  "grpc.enable_http_proxy": 0,
  "grpc.enable_channelz": 0,
  "grpc-node.flow_control_window": limits.windowBytes,
});

/**
 * Options for a server that is none of ours. etcd drops a connection that is pinged every 5 s or more often, or while no call is on it
 * ("excess pings"); grpc-go does so by default.
 */
export const foreignOptions: ChannelOptions = {
  ...clientOptions(defaultLimits),
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_permit_without_calls": 0,
};

export const serverOptions = (limits: GrpcLimits): ChannelOptions => ({
  "grpc.max_receive_message_length": receiveBytesMax(limits),
  "grpc.max_send_message_length": -1,
  "grpc.keepalive_time_ms": limits.keepAliveEveryMs,
  "grpc.keepalive_timeout_ms": limits.keepAliveTimeoutMs,
  "grpc.max_concurrent_streams": 1024,
  // Without channelz a server of grpc-js 1.14 keeps no list of its connections, and forceShutdown leaves them open.
  "grpc.enable_channelz": 1,
});
