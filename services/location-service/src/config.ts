/** Configuration of a location service: each key also by environment (STAMP_<UPPER_SNAKE>) and flag (--kebab-case). */
import { placementLimits } from "@stamp/geo";
import { z } from "zod";

const milliseconds = (fallback: number) => z.number().int().min(1).default(fallback);

export const locationServiceSchema = z.object({
  name: z.string().min(1).default("location-service-1").describe("Name of this process, unique among those that share a lock service"),
  listen: z.string().default("127.0.0.1:7900").describe("host:port to listen at"),
  advertise: z.string().optional().describe("Address that others use, when it is not the one listened at"),
  lockService: z
    .string()
    .default("127.0.0.1:7910")
    .describe("Address of the location's own lock service, which no stamp shares; of several, separated by commas"),
  dataDir: z.string().default(".stamp/location-service-1").describe("Folder of this process (its identity only)"),
  stampSecretsDir: z
    .string()
    .default("")
    .describe(
      "Folder with the secrets of the stamps, one file each, and for a stamp with TLS the folder SECRET-certs beside its file; empty: no stamp has a secret of its own",
    ),
  leaseTermMs: milliseconds(6_000).describe("Term of the leader lease"),
  leaseMarginMs: milliseconds(1_000).describe("How much earlier the leader takes its lease for ended"),
  leaseRenewEveryMs: milliseconds(500).describe("Time between renewals of the leader lease"),
  metadataTimeoutMs: milliseconds(3_000).describe("Deadline of a transaction; one that misses it ends the leader's term"),
  stampTimeoutMs: milliseconds(5_000).describe("Deadline of one question to a stamp"),
  askEveryMs: milliseconds(10_000).describe("How often each stamp is asked for its capacity, and what was not answered is sent again"),
  drainMaxMs: milliseconds(60_000).describe(
    "How long a failover or a migration may refuse writes before it is given up and the primary takes writes again",
  ),
  refuseAboveUsed: z
    .number()
    .gt(0)
    .max(1)
    .default(placementLimits.refuseAbove)
    .describe("Part of its bytes, used, from which on a stamp takes no new account (article 004: 0.8)"),
  accountsEveryMs: milliseconds(60_000).describe("How often each stamp is asked for its accounts"),
});

export type LocationServiceConfig = z.infer<typeof locationServiceSchema>;
