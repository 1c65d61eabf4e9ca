/** Configuration of a lock service: each key also by environment (STAMP_<UPPER_SNAKE>) and flag (--kebab-case). */
import { z } from "zod";

export const lockServiceSchema = z.object({
  name: z.string().min(1).default("lock-service-1").describe("Name of this process, unique inside the stamp"),
  listen: z.string().default("127.0.0.1:7100").describe("host:port to listen at"),
  advertise: z.string().optional().describe("Address that others use, when it is not the one listened at"),
  dataDir: z.string().default(".stamp/lock-service-1").describe("Folder of the metadata store"),
  init: z
    .boolean()
    .default(false)
    .describe("Create a new stamp when the metadata store is empty; without it an empty store is never served"),
  reserveBytes: z
    .number()
    .int()
    .min(0)
    .default(32 * 1024 * 1024)
    .describe("Free space of its disk below which nothing new is recorded: leases are renewed and everything is read, writes are refused"),
  keysMax: z
    .number()
    .int()
    .min(1)
    .default(1_100_000)
    .describe("Keys of the metadata store from which on transactions that make new ones are refused (docs/guides/metadata.md)"),
  waitingMax: z.number().int().min(1).default(10_000).describe("Requests that may wait for the store; more are refused"),
  groupMax: z.number().int().min(1).default(256).describe("Requests that may share one synced write"),
});

export type LockServiceConfig = z.infer<typeof lockServiceSchema>;
