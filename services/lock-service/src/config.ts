/** Configuration of a lock service. Every key is also STAMP_<UPPER_SNAKE> and --kebab-case. */
import { z } from "zod";

export interface LockServiceConfig {
  readonly name: string;
  readonly listen: string;
  readonly advertise?: string | undefined;
  readonly init: boolean;
  readonly waitingMax: number;
  readonly groupMax: number;
}

export const lockServiceConfigSchema: z.ZodType<LockServiceConfig> & z.ZodObject = z.object({
  name: z.string().min(1).default("lock-service-1").describe("Unique name of this process inside the stamp"),
  listen: z.string().min(1).default("127.0.0.1:11000").describe("Where it serves gRPC, host:port"),
  advertise: z.string().min(1).optional().describe("Where others reach it, when that is not `listen`"),
  init: z
    .boolean()
    .default(false)
    .describe(
      "Create a new stamp when the metadata store is empty; without it an empty store is never served (nothing to lose it silently to)",
    ),
  waitingMax: z.number().int().positive().default(10_000).describe("Requests that may wait for the store; more are refused"),
  groupMax: z.number().int().positive().default(256).describe("Requests that may share one synced write"),
});
