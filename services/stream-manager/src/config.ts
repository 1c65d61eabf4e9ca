/** Configuration of a stream manager: each key also by environment (STAMP_<UPPER_SNAKE>) and flag (--kebab-case). */
import { profileNames } from "@stamp/erasure";
import type { CodingPolicy } from "@stamp/stream";
import { z } from "zod";

const milliseconds = (fallback: number) => z.number().int().min(1).default(fallback);
const copies = (fallback: number) => z.number().int().min(1).max(5).default(fallback);

/** The policy of erasure coding. A word stands for the object with every default. */
const erasureCoding = z.union(
  [
    z.enum(["auto", "off"]),
    z.strictObject({
      profile: z.enum(["auto", ...profileNames]).default("auto"),
      afterSeconds: z.number().int().min(0).default(3_600),
      minBytes: z
        .number()
        .int()
        .min(1)
        .default(16 * 1024 * 1024),
    }),
  ],
  { error: `auto, off, or {"profile","afterSeconds","minBytes"}; profiles: auto, ${profileNames.join(", ")}` },
);

export const streamManagerSchema = z.object({
  name: z.string().min(1).default("stream-manager-1").describe("Name of this process, unique inside the stamp"),
  listen: z.string().default("127.0.0.1:7200").describe("host:port to listen at"),
  advertise: z.string().optional().describe("Address that others use, when it is not the one listened at"),
  lockService: z.string().default("127.0.0.1:7100").describe("Address of the lock service; of several, separated by commas"),
  dataDir: z.string().default(".stamp/stream-manager-1").describe("Folder of this process (its identity only)"),
  copies: copies(3).describe("Replicas of an extent"),
  minCopies: copies(2).describe("With fewer nodes an extent has as few replicas as this; a sealed length is told when as many hold it"),
  leaseTermMs: milliseconds(6_000).describe("Term of the leader lease"),
  leaseMarginMs: milliseconds(1_000).describe("How much earlier the leader takes its lease for ended"),
  leaseRenewEveryMs: milliseconds(500).describe("Time between renewals of the leader lease"),
  heldQuestionMs: z
    .number()
    .int()
    .min(0)
    .default(2_000)
    .describe("How long the lock service may hold a standby's question until there is news; 0: it answers at once"),
  nodeDownAfterMs: milliseconds(3_000).describe("An extent node that did not report for so long is down"),
  repairAfterMs: milliseconds(60_000).describe("Replicas of a node that is away for so long are made again elsewhere"),
  repairCopiesMax: z.number().int().min(1).max(64).default(4).describe("Copies of extents that are made at the same time"),
  repairBytesPerSecond: z
    .number()
    .int()
    .min(1_024)
    .default(64 * 1024 * 1024)
    .describe("Copies of extents are not begun faster than this, over the whole stamp"),
  erasureCoding: erasureCoding
    .default("auto")
    .describe(
      'Which sealed extents become fragments: off, auto, or {"profile":"rs-4-2","afterSeconds":3600,"minBytes":16777216}; auto takes the widest code that the fault domains carry with one to spare, from 7 extent nodes on',
    ),
  codingsMax: z
    .number()
    .int()
    .min(1)
    .max(64)
    .default(2)
    .describe("Extents that become fragments at the same time, and as many that become replicas again"),
  codingBytesPerSecond: z
    .number()
    .int()
    .min(1_024)
    .default(32 * 1024 * 1024)
    .describe("Extents are not begun to be coded and decoded faster than this, over the whole stamp"),
  syncEveryMs: milliseconds(600_000).describe("How often what a node holds is compared with what it should hold, restarts aside"),
  deletionGraceMs: milliseconds(120_000).describe(
    "A dropped extent is kept for so long before its replicas are deleted: longer than a request takes, and than the age of the copies of the metadata that a restore may begin from",
  ),
  fenceTimeoutMs: milliseconds(1_000).describe("Deadline of one Fence; it is sent again until the seal is decided"),
  createTimeoutMs: milliseconds(1_000).describe("Deadline of making a replica; a node that misses it is not chosen again at once"),
  sealTimeoutMs: milliseconds(30_000).describe("Deadline of bringing a replica to the sealed length, copying included"),
  copyTimeoutMs: milliseconds(120_000).describe("Deadline of copying a whole extent to another node, besides a second for each 2 MiB"),
  metadataTimeoutMs: milliseconds(3_000).describe("Deadline of a metadata transaction; one that misses it ends the leader's term"),
  tickMs: milliseconds(500).describe("How often node health, repair and garbage are looked at"),
});

export type StreamManagerConfig = z.infer<typeof streamManagerSchema>;

/** Returns the policy with every default filled in. */
export function codingPolicyOf({ erasureCoding: given }: Pick<StreamManagerConfig, "erasureCoding">): CodingPolicy {
  if (typeof given === "object") return given;
  return { ...(erasureCoding.parse({}) as CodingPolicy), profile: given };
}
