/** Facts of the configuration, the certificate and the files of a supervised cluster. */
import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { FailureError } from "@stamp/base";
import {
  type ClusterConfig,
  internalReachOf,
  noAccountServed,
  nodesLeftOut,
  operatorName,
  peerFilesOf,
  planCluster,
  restReachOf,
} from "@stamp/cluster";
import { inWords, readPair, readPeerTls } from "@stamp/ports-node";
import { recordOf } from "../cluster/known-record.ts";
import type { SetUpFacts, TlsFacts } from "./facts.ts";

/** Mode bits of everybody but the owner. */
const others = 0o077;

/** `running`: names of the running processes; undefined: the supervisor says nothing. */
export function setUpFacts(config: ClusterConfig, running: readonly string[] | undefined): SetUpFacts {
  const { dataDir, httpBind, internalBind, copies, minCopies, extentNodes, faultDomains } = config;
  const known = recordOf(dataDir);
  const retired = known?.retired ?? [];
  const plan = planCluster(config, known);
  const planned = plan.processes.map(({ name }) => name);
  return {
    dataDir,
    httpBind,
    internalBind,
    restReach: restReachOf(config, plan),
    internalReach: internalReachOf(config, plan),
    noAccount: noAccountServed(config),
    copies,
    minCopies,
    extentNodes,
    faultDomains,
    developmentAccountForOthers: config.allowDevelopmentAccount,
    tls: tlsFacts(config),
    peers: peerFacts(config, planned),
    notStarted: nodesLeftOut(dataDir, running ?? planned, retired),
    openPaths: openPathsIn(dataDir, planned),
  };
}

function tlsFacts({ tlsCert, tlsKey }: ClusterConfig): TlsFacts | undefined {
  if (tlsCert === undefined || tlsKey === undefined) return undefined;
  try {
    readPair({ certificatePath: tlsCert, keyPath: tlsKey });
    const { validTo } = new X509Certificate(readFileSync(tlsCert));
    return { certificate: tlsCert, endsAtMs: Date.parse(validTo), problem: "" };
  } catch (error) {
    const problem = error instanceof FailureError ? error.failure.message : inWords(error);
    return { certificate: tlsCert, endsAtMs: undefined, problem };
  }
}

/** Returns the first certificate that can't be used; if all can, the one that ends first. */
function peerFacts(config: ClusterConfig, planned: readonly string[]): TlsFacts | undefined {
  if (config.tls !== "cluster") return undefined;
  let first: TlsFacts | undefined;
  for (const name of [operatorName, ...planned]) {
    const files = peerFilesOf(config, name);
    try {
      // A certificate that has ended is read, too, and shown as ended.
      const { endsAtMs } = readPeerTls(files, 0);
      if (first?.endsAtMs === undefined || endsAtMs < first.endsAtMs) first = { certificate: files.cert, endsAtMs, problem: "" };
    } catch (error) {
      return { certificate: files.cert, endsAtMs: undefined, problem: inWords(error) };
    }
  }
  return first;
}

/** Returns the stamp's own paths that others may read. The folder may hold other things. */
function openPathsIn(dataDir: string, planned: readonly string[]): string[] {
  // A closed folder closes everything in it.
  if (process.platform === "win32" || !isOpen(dataDir)) return [];
  const ours = [
    ...planned,
    "logs",
    "run",
    "stamp.json",
    "cluster.json",
    "cluster-secret",
    "cluster-secret.next",
    "cluster-secret.previous",
    "cluster-certs",
    "master-key",
    "master-key.next",
    "master-key.previous",
  ];
  return ours.map((name) => join(dataDir, name)).filter(isOpen);
}

/** True if a file or folder exists and users other than its owner may read it. */
function isOpen(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & others) !== 0;
}
