/** Configuration of a partition manager. Every key is also STAMP_<UPPER_SNAKE> and --kebab-case. */
import { z } from "zod";

export interface InitialAccount {
  readonly name: string;
  /** Base64; one or two. */
  readonly keys: readonly string[];
}

export interface PartitionManagerConfig {
  readonly name: string;
  readonly listen: string;
  readonly advertise?: string | undefined;
  readonly lockService: string;
  readonly leaseTermMs: number;
  readonly leaseMarginMs: number;
  readonly leaseRenewEveryMs: number;
  readonly pollEveryMs: number;
  readonly probeEveryMs: number;
  readonly unreachableAfterMs: number;
  readonly loadTimeoutMs: number;
  readonly accounts: readonly InitialAccount[];
}

/** The account that every Azure Storage tool knows (`UseDevelopmentStorage=true`); its key is public. */
export const developmentAccount: InitialAccount = {
  name: "devstoreaccount1",
  keys: ["Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="],
};

const account = z.object({ name: z.string().regex(/^[a-z0-9]{3,24}$/), keys: z.array(z.string().min(1)).min(1).max(2) });

/** From the environment and flags it comes as JSON text. */
const accounts = z.preprocess((value, context) => {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    context.addIssue({ code: "custom", message: "not JSON" });
    return z.NEVER;
  }
}, z.array(account).max(1_000));

export const partitionManagerConfigSchema: z.ZodType<PartitionManagerConfig> & z.ZodObject = z.object({
  name: z.string().min(1).default("partition-manager-1").describe("Unique name of this process inside the stamp"),
  listen: z.string().min(1).default("127.0.0.1:11100").describe("Where it serves gRPC, host:port"),
  advertise: z.string().min(1).optional().describe("Where others reach it, when that is not `listen`"),
  lockService: z.string().min(1).default("127.0.0.1:11000").describe("Address of the lock service, host:port"),
  leaseTermMs: z.number().int().positive().default(6_000).describe("Term of the leader's lease"),
  leaseMarginMs: z.number().int().nonnegative().default(1_000).describe("How long before its end the lease is no longer relied on"),
  leaseRenewEveryMs: z.number().int().positive().default(2_000).describe("How often the lease is renewed"),
  pollEveryMs: z.number().int().positive().default(500).describe("How often the lock service is asked about servers' leases"),
  probeEveryMs: z.number().int().positive().default(1_000).describe("How often every partition server is asked what it serves"),
  unreachableAfterMs: z
    .number()
    .int()
    .positive()
    .default(5_000)
    .describe("A server that holds its lease but could not be called for so long is given up: its renewals are refused"),
  loadTimeoutMs: z
    .number()
    .int()
    .positive()
    .default(10_000)
    .describe("How long one Load or Close of a range may take before it is sent again"),
  accounts: accounts
    .default([{ name: developmentAccount.name, keys: [...developmentAccount.keys] }])
    .describe("Accounts inserted when they are absent: a list of {name, keys}, keys in base64"),
});
