/** The gRPC transport of tools: supervisor, command line. They prove themselves with the secret of the cluster, as its processes do. */

import { existsSync } from "node:fs";
import { credentialOf, GrpcTransport, PeerCertificates, type PeerTls, type SecretCredential } from "@stamp/ports-node";
import type { Caller } from "@stamp/wire";
import type { ClusterConfig } from "./config.ts";
import { type ClusterSecretFiles, secretFilesOf } from "./secret-files.ts";
import { operatorName, peerFilesOf } from "./topology/peer-files.ts";

/** Returns a transport that reads the secret at each connection: a start may make it, and it may change meanwhile. */
export function ownTransport(config: ClusterSecretFiles & Partial<Pick<ClusterConfig, "tls">>): GrpcTransport {
  let certificates: PeerCertificates | undefined;
  const tls = (): PeerTls => {
    certificates ??= new PeerCertificates(peerFilesOf(config, operatorName));
    certificates.look();
    return certificates.tls;
  };
  return new GrpcTransport({ credential: () => ownCredential(config), tls: config.tls === "cluster" ? tls : undefined });
}

/** Returns the credential of a tool, read now. Throws ConfigError. `caller`: the role that the tool says to have. */
export const ownCredential = (config: ClusterSecretFiles, caller: Caller = "operator"): SecretCredential =>
  credentialOf(sourcesOf(config), caller);

function sourcesOf(config: ClusterSecretFiles) {
  const { current, previous } = secretFilesOf(config);
  if (existsSync(current)) return { clusterSecretFile: current, clusterSecretPreviousFile: previous };
  // In a container the environment may have it, as for the processes. With neither, the processes say what is missing.
  const { STAMP_CLUSTER_SECRET: clusterSecret = "", STAMP_CLUSTER_SECRET_PREVIOUS: clusterSecretPrevious = "" } = process.env;
  return { clusterSecret, clusterSecretPrevious };
}
