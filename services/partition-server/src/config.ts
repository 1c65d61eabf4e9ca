/** Configuration of a partition server. Every key is also STAMP_<UPPER_SNAKE> and --kebab-case. */
import { z } from "zod";

export interface PartitionServerConfig {
  readonly name: string;
  readonly listen: string;
  readonly advertise?: string | undefined;
  readonly lockService: string;
  readonly leaseTermMs: number;
  readonly leaseMarginMs: number;
  readonly leaseRenewEveryMs: number;
  readonly operationsMax: number;
}

export const partitionServerConfigSchema: z.ZodType<PartitionServerConfig> & z.ZodObject = z.object({
  name: z.string().min(1).default("partition-server-1").describe("Unique name of this process inside the stamp"),
  listen: z.string().min(1).default("127.0.0.1:11200").describe("Where it serves gRPC, host:port"),
  advertise: z.string().min(1).optional().describe("Where others reach it, when that is not `listen`"),
  lockService: z.string().min(1).default("127.0.0.1:11000").describe("Address of the lock service, host:port"),
  leaseTermMs: z.number().int().positive().default(6_000).describe("Term of this server's lease"),
  leaseMarginMs: z.number().int().nonnegative().default(1_000).describe("How long before its end the lease is no longer relied on"),
  leaseRenewEveryMs: z.number().int().positive().default(2_000).describe("How often the lease is renewed"),
  operationsMax: z.number().int().positive().default(5_000).describe("Operations at work or waiting in this server; more are refused"),
});
