/** Configuration of a partition manager: each key also by environment (STAMP_<UPPER_SNAKE>) and flag (--kebab-case). */
import type { BalancePolicy } from "@stamp/partition-map";
import { z } from "zod";

const milliseconds = (fallback: number) => z.number().int().min(1).default(fallback);
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const accountSchema = z.object({
  name: z.string().regex(/^[a-z0-9]{3,24}$/, "3 to 24 lower-case letters and digits"),
  keys: z.array(z.string().min(4).regex(base64, "not base64")).min(1).max(2),
  hierarchicalNamespace: z.boolean().optional(),
});

export type InitialAccount = z.infer<typeof accountSchema>;

/** The account that every Azure Storage tool knows (`UseDevelopmentStorage=true`); its key is public. */
export const developmentAccount: InitialAccount = {
  name: "devstoreaccount1",
  keys: ["Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="],
};

export const partitionManagerConfigSchema = z.object({
  name: z.string().min(1).default("partition-manager-1").describe("Name of this process, unique inside the stamp"),
  listen: z.string().default("127.0.0.1:0").describe("host:port to listen at"),
  advertise: z.string().optional().describe("Address that others use, when it is not the one listened at"),
  lockService: z.string().default("127.0.0.1:7100").describe("Address of the lock service; of several, separated by commas"),
  dataDir: z.string().default(".stamp/partition-manager-1").describe("Folder of this process's identity"),
  leaseTermMs: milliseconds(6_000).describe("Term of the leader's lease"),
  leaseMarginMs: milliseconds(1_000).describe("How long before its end the lease is no longer relied on"),
  leaseRenewEveryMs: milliseconds(500).describe("Time between renewals of the lease"),
  pollEveryMs: milliseconds(500).describe("Time between two questions to the lock service about servers' leases"),
  heldQuestionMs: z
    .number()
    .int()
    .min(0)
    .default(2_000)
    .describe("How long the lock service may hold a question about leases until there is news; 0: it answers at once"),
  probeEveryMs: milliseconds(1_000).describe("Time between two questions to each partition server about what it serves"),
  unreachableAfterMs: milliseconds(5_000).describe(
    "A server that holds its lease but could not be called for so long is given up: its renewals are refused",
  ),
  loadTimeoutMs: milliseconds(10_000).describe("How long a Load or Close of a range may take before it is sent again"),
  loadsAtOnceMax: z
    .number()
    .int()
    .min(1)
    .default(64)
    .describe("Ranges that one server is asked to load at the same time; the others wait, those that were asked most first"),
  reshapeTimeoutMs: milliseconds(60_000).describe("How long a split or merge may take at a server before it is given up and undone"),
  balance: z
    .boolean()
    .default(true)
    .describe("Split, merge and move ranges by themselves; `stamp rebalance plan` shows what would be done"),
  balanceEveryMs: milliseconds(10_000).describe("Time between two looks at the load, and between two steps"),
  balanceRestMs: milliseconds(60_000).describe("How long a range is left as it is after it was loaded, split or merged"),
  splitBytes: z
    .number()
    .int()
    .min(1)
    .default(1024 ** 3)
    .describe("Rows of a range beyond which it is split, in bytes"),
  splitRequestsPerSecond: z.number().min(1).default(2_000).describe("Load of a range beyond which it is split"),
  mergeBytes: z
    .number()
    .int()
    .min(0)
    .default(64 * 1024 ** 2)
    .describe("Rows of two neighbours together below which they are merged, in bytes"),
  mergeRequestsPerSecond: z.number().min(0).default(1).describe("Load of two neighbours together below which they are merged"),
  moveRatio: z
    .number()
    .min(1)
    .default(1.5)
    .describe("A server with more than so many times the load of the least loaded one gives a range away"),
  moveRequestsPerSecond: z
    .number()
    .min(1)
    .default(200)
    .describe("Differences of load between servers below it are left, in requests a second"),
  moveProcessors: z
    .number()
    .min(0.01)
    .default(0.5)
    .describe("Differences of CPU between servers below it are left, in processors; looked at when requests are even"),
  moveBytes: z
    .number()
    .int()
    .min(1)
    .default(1024 ** 3)
    .describe("Differences of rows between servers below it are left, in bytes; looked at when requests and CPU are even"),
  moveBytesRatio: z
    .number()
    .min(1)
    .default(1.2)
    .describe("A server with more than so many times the rows, in bytes, of the one with the fewest gives a range away"),
  rangesMax: z.number().int().min(4).default(10_000).describe("Ranges of the stamp; with so many none is split by itself"),
  accounts: z
    .array(accountSchema)
    .max(1_000)
    .default([developmentAccount])
    .describe("Accounts inserted when they are absent: [{name, keys, hierarchicalNamespace}], keys in base64; in the environment as JSON"),
});

export type PartitionManagerConfig = z.infer<typeof partitionManagerConfigSchema>;

export const balancePolicyOf = (config: PartitionManagerConfig): BalancePolicy => ({
  splitBytes: config.splitBytes,
  splitRequestsPerSecond: config.splitRequestsPerSecond,
  mergeBytes: config.mergeBytes,
  mergeRequestsPerSecond: config.mergeRequestsPerSecond,
  moveRatio: config.moveRatio,
  moveRequestsPerSecond: config.moveRequestsPerSecond,
  moveProcessors: config.moveProcessors,
  moveBytes: config.moveBytes,
  moveBytesRatio: config.moveBytesRatio,
  restMs: config.balanceRestMs,
  rangesMax: config.rangesMax,
});
