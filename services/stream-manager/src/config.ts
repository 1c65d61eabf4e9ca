/** Configuration of a stream manager. Every key is also STAMP_<UPPER_SNAKE> and --kebab-case. */
import { z } from "zod";

export interface StreamManagerConfig {
  readonly name: string;
  readonly listen: string;
  readonly advertise?: string | undefined;
  readonly lockService: string;
  readonly copies: number;
  readonly minCopies: number;
  readonly leaseTermMs: number;
  readonly leaseMarginMs: number;
  readonly leaseRenewEveryMs: number;
  readonly nodeDownAfterMs: number;
  readonly repairAfterMs: number;
  readonly deletionGraceMs: number;
  readonly fenceTimeoutMs: number;
  readonly createTimeoutMs: number;
  readonly sealTimeoutMs: number;
  readonly copyTimeoutMs: number;
  readonly metadataTimeoutMs: number;
  readonly tickMs: number;
}

const milliseconds = (): z.ZodNumber => z.number().int().positive();

export const streamManagerConfigSchema: z.ZodType<StreamManagerConfig> & z.ZodObject = z.object({
  name: z.string().min(1).default("stream-manager-1").describe("Unique name of this process inside the stamp"),
  listen: z.string().min(1).default("127.0.0.1:11100").describe("Where it serves gRPC, host:port"),
  advertise: z.string().min(1).optional().describe("Where others reach it, when that is not `listen`"),
  lockService: z.string().min(1).default("127.0.0.1:11000").describe("Address of the lock service"),
  copies: z.number().int().min(1).max(5).default(3).describe("Replicas of an extent"),
  minCopies: z
    .number()
    .int()
    .min(1)
    .max(5)
    .default(2)
    .describe("With fewer nodes an extent is made with as few replicas as this; and a seal is told when as many hold it"),
  leaseTermMs: milliseconds().default(6_000).describe("Term of the leader lease"),
  leaseMarginMs: milliseconds().default(1_000).describe("How much earlier the leader takes its lease for ended"),
  leaseRenewEveryMs: milliseconds().default(2_000).describe("Time between renewals of the leader lease"),
  nodeDownAfterMs: milliseconds().default(3_000).describe("An extent node that did not report for so long is down"),
  repairAfterMs: milliseconds().default(60_000).describe("Replicas of a node that is away for so long are made again elsewhere"),
  deletionGraceMs: milliseconds().default(600_000).describe("A dropped extent is kept for so long before its replicas are deleted"),
  fenceTimeoutMs: milliseconds().default(1_000).describe("Deadline of one Fence; it is sent again until the seal is decided"),
  createTimeoutMs: milliseconds()
    .default(1_000)
    .describe("Deadline of making a replica; a node that misses it is not chosen again at once"),
  sealTimeoutMs: milliseconds().default(30_000).describe("Deadline of bringing a replica to the sealed length, copying included"),
  copyTimeoutMs: milliseconds().default(120_000).describe("Deadline of copying a whole extent to another node"),
  metadataTimeoutMs: milliseconds()
    .default(3_000)
    .describe("Deadline of a metadata transaction; one that misses it ends the leader's term"),
  tickMs: milliseconds().default(500).describe("How often node health, repair and garbage are looked at"),
});
