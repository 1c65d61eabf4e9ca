/**
 * The end of a process that serves HTTP doors, in steps:
 *
 *   1. `/ready` answers 503, and every door goes on as before: load balancers send nothing new here (`stopNotReadyMs`)
 *   2. all doors at once, the role's gRPC door among them, take no more connections; requests in progress have `stopDrainMs` to end
 *   3. what is left is cut: an HTTP connection closes without an answer, and a gRPC call fails as `unavailable` and perhaps applied, because
 *      nobody knows whether a write happened; the log has one line for each door with the number of such calls
 *   4. the role stops, then the health door closes
 */
import type { Logger, Role } from "@stamp/ports";
import { z } from "zod";
import type { HttpListener } from "../http/http-server.ts";

/** Configuration keys of every process about its stop. */
export const stopKeys = {
  stopNotReadyMs: z
    .number()
    .int()
    .min(0)
    .max(600_000)
    .default(0)
    .describe("Time that a process which stops serves on while /ready answers 503; longer than a load balancer takes to notice."),
  stopDrainMs: z
    .number()
    .int()
    .min(0)
    .max(3_600_000)
    .default(2_000)
    .describe("Time that requests in progress have to end when a process stops; then their connections are closed."),
};

export type StopTimes = z.infer<z.ZodObject<typeof stopKeys>>;

export interface OpenDoor {
  readonly door: string;
  readonly listener: HttpListener;
}

/** Does steps 1 to 3 for doors that clients use. Without one there is nobody to wait for. */
export async function closeDoors(doors: readonly OpenDoor[], role: Role, times: StopTimes, logger: Logger): Promise<void> {
  if (doors.length === 0) return;
  role.announceStop?.();
  if (times.stopNotReadyMs > 0) await new Promise((resolve) => setTimeout(resolve, times.stopNotReadyMs));
  const grpc = { door: "grpc", listener: { close: (graceMs: number) => role.drain?.(graceMs) ?? 0 } };
  const cut = await Promise.all(
    [...doors, grpc].map(async ({ door, listener }) => ({ door, requests: await listener.close(times.stopDrainMs) })),
  );
  for (const { door, requests } of cut.filter((each) => each.requests > 0))
    logger.warn("requests were cut because the process stops", { door, requests, stopDrainMs: times.stopDrainMs });
}
