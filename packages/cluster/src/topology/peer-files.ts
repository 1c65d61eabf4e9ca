/** Where the certificates of a cluster's processes lie, when they prove who they are to each other (`tls: "cluster"`). */
import { join } from "node:path";
import { ConfigError, type PeerFiles, readPeerTls } from "@stamp/ports-node";
import type { ClusterConfig } from "../config.ts";
import type { PlannedProcess } from "../plan.ts";

/** The name that tools, commands and the supervisor have. */
export const operatorName = "operator";

export const peerFolder = ({ dataDir }: Pick<ClusterConfig, "dataDir">): string => join(dataDir, "cluster-certs");

/** `name`: of the process, or `operatorName`. */
export const peerFilesOf = (config: Pick<ClusterConfig, "dataDir">, name: string): PeerFiles => ({
  cert: join(peerFolder(config), `${name}.pem`),
  key: join(peerFolder(config), `${name}-key.pem`),
  ca: join(peerFolder(config), "ca.pem"),
});

/** Why a process that is planned could not prove who it is, in words; undefined if each can, or need not. */
export function missingPeer(
  config: Pick<ClusterConfig, "dataDir" | "tls">,
  processes: readonly Pick<PlannedProcess, "name" | "role">[],
): string | undefined {
  if (config.tls !== "cluster") return undefined;
  for (const { name, role } of [{ name: operatorName, role: operatorName }, ...processes]) {
    try {
      const { own } = readPeerTls(peerFilesOf(config, name));
      if (own.role !== role || own.name !== name)
        throw new ConfigError(`${peerFilesOf(config, name).cert} is for the ${own.role} ${own.name}, not for the ${role} ${name}`);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return `tls: ${error.message}. Make what is missing: ./stamp certs cluster init --data ${config.dataDir}`;
    }
  }
  return undefined;
}
