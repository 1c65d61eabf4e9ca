/**
 * Receive windows of the server side. A server receives the bulk of our bytes (appends), and grpc-js lets only clients set their windows:
 * 64 KiB per round trip is 130 MB/s at half a millisecond. So two of its internals are touched, each looked at before: where they
 * are not as known, nothing is done and the default stays. `server.test.ts` fails when an update of grpc-js moves them.
 */
import type { Server } from "@grpc/grpc-js";

interface Http2Options {
  settings?: Record<string, number>;
  maxSendHeaderBlockLength?: number;
}

interface Http2Session {
  setLocalWindowSize(bytes: number): void;
  readonly state: { readonly localWindowSize?: number };
}

/** The window of each stream, announced in the settings of every connection. */
export function widenStreams(server: Server, windowBytes: number): boolean {
  const options = Reflect.get(server, "commonServerOptions") as Http2Options | undefined;
  if (typeof options?.maxSendHeaderBlockLength !== "number") return false;
  options.settings = { ...options.settings, initialWindowSize: windowBytes };
  return true;
}

/** The window of the whole connection that a stream is on. */
export function widenConnection(stream: object, windowBytes: number): boolean {
  const call = Reflect.get(stream, "call") as { stream?: { session?: Http2Session } } | undefined;
  const session = call?.stream?.session;
  if (typeof session?.setLocalWindowSize !== "function") return false;
  if ((session.state.localWindowSize ?? 0) < windowBytes) session.setLocalWindowSize(windowBytes);
  return true;
}
