/** Where the secret of a cluster lies, and the ones beside it during a rotation. */
import { join } from "node:path";
import { type SecretFiles, secretFilesBeside } from "@stamp/ports-node";
import type { ClusterConfig } from "./config.ts";

export type ClusterSecretFiles = Pick<ClusterConfig, "dataDir" | "clusterSecretFile">;

export const secretFilesOf = ({ dataDir, clusterSecretFile }: ClusterSecretFiles): SecretFiles =>
  secretFilesBeside(clusterSecretFile ?? join(dataDir, "cluster-secret"));
