/** Where the secret of a cluster lies, and the one before it while processes change over in turn. */
import { join } from "node:path";
import type { ClusterConfig } from "./config.ts";

export type ClusterSecretFiles = Pick<ClusterConfig, "dataDir" | "clusterSecretFile">;

export function secretFilesOf({ dataDir, clusterSecretFile }: ClusterSecretFiles): { readonly current: string; readonly previous: string } {
  const current = clusterSecretFile ?? join(dataDir, "cluster-secret");
  return { current, previous: `${current}.previous` };
}
