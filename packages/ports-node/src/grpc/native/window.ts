/**
 * Receive windows of streams to a server: grpc-js lets only clients set theirs, and 64 KiB per round trip is 130 MB/s at half a
 * millisecond. So one of its internals is touched, looked at before: where it is not as known, nothing is done and the default stays.
 * `server.test.ts` fails when an update of grpc-js moves it.
 */
import type { Server } from "@grpc/grpc-js";

interface Http2Options {
  settings?: Record<string, number>;
  maxSendHeaderBlockLength?: number;
}

/** Widens the window of each stream; the settings of every connection announce it. */
export function widenStreams(server: Server, windowBytes: number): boolean {
  const options = Reflect.get(server, "commonServerOptions") as Http2Options | undefined;
  if (typeof options?.maxSendHeaderBlockLength !== "number") return false;
  options.settings = { ...options.settings, initialWindowSize: windowBytes };
  return true;
}
