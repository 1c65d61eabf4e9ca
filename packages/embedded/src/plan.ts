/** Roles of an embedded stamp and their configuration: the same as a local cluster, sized for one process. */
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { type FrontEndConfig, FrontEndRole, frontEndConfigSchema } from "@stamp/front-end";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { developmentAccount, PartitionManagerRole, partitionManagerConfigSchema } from "@stamp/partition-manager";
import { PartitionServerRole, partitionServerConfigSchema } from "@stamp/partition-server";
import type { Role, World } from "@stamp/ports";
import { NodeHttpClient, oidcIssuer } from "@stamp/ports-node";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";

/** Bearer tokens of an OpenID Connect issuer, as the front-end's configuration has them. */
export type OidcSettings = Pick<FrontEndConfig, "oidcIssuer"> &
  Partial<Pick<FrontEndConfig, "oidcAudiences" | "oidcJwks" | "oidcRolesClaim" | "oidcRoles" | "oidcPlainHttp" | "oidcAuthorizationUri">>;

export interface PlannedRole {
  readonly name: string;
  readonly make: (world: World) => Role;
}

export interface PlanOptions {
  /** True if there are no data yet: a stamp is made. */
  readonly init: boolean;
  /** Replicas of an extent, each on an extent node of its own. */
  readonly replicas: number;
  /** More than one: the metadata are replicated over them. */
  readonly lockServices: number;
  readonly partitionServers: number;
  readonly oidc: OidcSettings | undefined;
  readonly copySources: readonly string[];
  /** True if the account is made with a hierarchical namespace. */
  readonly hierarchicalNamespace?: boolean;
}

const mebibyte = 1024 * 1024;
/** Processes of one machine beat at 100 ms; roles of one process miss no beat for want of a network. */
const consensusTickMs = 50;
/** Address of the doors, for the front-end's rules about the well-known key. */
const onLoopback = "127.0.0.1:0";
export const partitionManager = "partition-manager-1";

/** Returns the roles in the order of a cold start; the front-end is the last. */
export function plan(options: PlanOptions): PlannedRole[] {
  const numbered = (role: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${role}-${i + 1}`);
  const lockServices = numbered("lock-service", options.lockServices);
  const replicated =
    options.lockServices === 1
      ? {}
      : { metadataStore: "replicated", members: lockServices.map((name) => `${name}=${name}`).join(","), consensusTickMs };
  const of = (name: string) => ({ name, listen: name, lockService: lockServices.join(",") });
  const accounts = [{ ...developmentAccount, hierarchicalNamespace: options.hierarchicalNamespace ?? false }];
  // Small segments, which are allocated at the first start; the largest append (8 MiB and its frames) fits into one.
  const node = { journalSegmentBytes: 9 * mebibyte, journalBatchBytesMax: 4 * mebibyte, pendingBytesMax: 16 * mebibyte };
  const copies = { copies: options.replicas, minCopies: Math.min(2, options.replicas) };
  return [
    ...lockServices.map((name) => ({
      name,
      make: (world: World) =>
        new LockServiceRole(world, lockServiceSchema.parse({ name, listen: name, init: options.init, ...replicated })),
    })),
    ...numbered("extent-node", options.replicas).map((name) => ({
      name,
      make: (world: World) => new ExtentNodeRole(world, extentNodeSchema.parse({ ...of(name), ...node })),
    })),
    {
      name: "stream-manager-1",
      make: (world) => new StreamManagerRole(world, streamManagerSchema.parse({ ...of("stream-manager-1"), ...copies })),
    },
    {
      name: partitionManager,
      make: (world) => new PartitionManagerRole(world, partitionManagerConfigSchema.parse({ ...of(partitionManager), accounts })),
    },
    ...numbered("partition-server", options.partitionServers).map((name) => ({
      name,
      make: (world: World) => new PartitionServerRole(world, partitionServerConfigSchema.parse({ ...of(name), geoRolesEveryMs: 0 })),
    })),
    {
      name: "front-end-1",
      make: (world) => {
        const { copySources } = options;
        const doors = {
          blobListen: onLoopback,
          queueListen: onLoopback,
          tableListen: onLoopback,
          fileListen: onLoopback,
          dfsListen: onLoopback,
        };
        const config = frontEndConfigSchema.parse({ ...of("front-end-1"), ...options.oidc, ...doors, copySources, faultRules: true });
        return new FrontEndRole(world, config, { issuerOf: oidcIssuer, http: new NodeHttpClient() });
      },
    },
  ];
}
