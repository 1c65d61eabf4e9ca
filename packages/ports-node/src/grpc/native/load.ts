/**
 * Loads grpc-js before the first call in a process that runs from its sources: at that call, the folder may hold another release. A process
 * that was started from a bundle has the code in its file.
 */
import type { Clock, Logger } from "@stamp/ports";

/** All processes of a stamp start at once; this comes when they are ready. */
const afterMs = 10_000;

export const isFromSources = (url: string): boolean => url.endsWith(".ts");

export function loadGrpcSoon(clock: Clock, logger: Logger, load = loadGrpc): void {
  clock.after(afterMs, () => {
    load().catch((error: unknown) => logger.warn("gRPC could not be loaded; the first call or connection tries again", { error }));
  });
}

export async function loadGrpc(): Promise<void> {
  await Promise.all([import("./grpc-server.ts"), import("./native-client.ts"), import("./foreign-connection.ts")]);
}
