/** Where the certificates of a cluster's processes lie, when they prove who they are to each other (`tls: "cluster"`). */
import { join } from "node:path";
import { ConfigError, type PeerFiles, readPeerTls } from "@stamp/ports-node";
import type { ClusterConfig } from "../config.ts";

/** The name that tools, commands and the supervisor have. */
export const operatorName = "operator";

export const peerFolder = ({ dataDir }: Pick<ClusterConfig, "dataDir">): string => join(dataDir, "cluster-certs");

/** `name`: name of the process, or `operatorName`. */
export const peerFilesOf = (config: Pick<ClusterConfig, "dataDir">, name: string): PeerFiles => ({
  cert: join(peerFolder(config), `${name}.pem`),
  key: join(peerFolder(config), `${name}-key.pem`),
  ca: join(peerFolder(config), "ca.pem"),
});

/** Returns why a process that is planned could not prove who it is, in words; undefined if each can, or need not. */
export function missingPeer(
  config: Pick<ClusterConfig, "dataDir" | "tls" | "topology" | "host">,
  processes: readonly { readonly name: string; readonly role: string }[],
): string | undefined {
  if (config.tls !== "cluster") return undefined;
  for (const { name, role } of [{ name: operatorName, role: operatorName }, ...processes]) {
    try {
      const { own } = readPeerTls(peerFilesOf(config, name));
      if (own.role !== role || own.name !== name)
        throw new ConfigError(`${peerFilesOf(config, name).cert} is for the ${own.role} ${own.name}, not for the ${role} ${name}`);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return `tls: ${error.message}. ${howToMake(config)}`;
    }
  }
  return undefined;
}

/** Returns the command that makes certificates. On one host of several `init` would make another authority, which the others refuse. */
const howToMake = ({ dataDir, topology, host }: Pick<ClusterConfig, "dataDir" | "topology" | "host">): string =>
  topology === undefined
    ? `Make what is missing: ./stamp certs cluster init --data ${dataDir}`
    : "Make what is missing on the host that has the authority: ./stamp certs cluster folders --dir certs; then copy certs/" +
      `${host} to ${join(dataDir, "cluster-certs")}. For the first host of a new stamp: ./stamp certs cluster init --host ${host}`;
