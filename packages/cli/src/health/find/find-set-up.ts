/** Findings about the configuration, certificates and files of a supervised cluster. */
import { counted } from "../counted.ts";
import type { SetUpFacts, StampFacts } from "../facts.ts";
import { fewNames } from "../few.ts";
import { type Finding, finding } from "../kinds/kinds.ts";

const dayMs = 24 * 3_600_000;
const certificateDays = 30;

export function findSetUp({ setUp, nowMs }: StampFacts): Finding[] {
  if (setUp === undefined) return [];
  return [...findReach(setUp), ...findCertificate(setUp, nowMs), ...findPeers(setUp, nowMs), ...findShape(setUp), ...findFiles(setUp)];
}

function findReach({ httpBind, internalBind, restReach, internalReach, ...setUp }: SetUpFacts): Finding[] {
  const { noAccount, tls, developmentAccountForOthers } = setUp;
  const found: Finding[] = [];
  if (internalReach !== undefined) found.push(finding("internal-ports-reachable", internalBind, internalReach));
  if (restReach !== undefined) {
    found.push(finding("reachable-by-others", httpBind, restReach));
    if (developmentAccountForOthers) found.push(finding("public-key-reachable", httpBind, "allowDevelopmentAccount is true"));
    if (tls === undefined) found.push(finding("no-tls", httpBind, "tlsCert and tlsKey are not given"));
  }
  if (noAccount !== undefined) found.push(finding("no-account", "", noAccount));
  return found;
}

function findCertificate({ tls }: SetUpFacts, nowMs: number): Finding[] {
  if (tls === undefined) return [];
  const { certificate, endsAtMs, problem } = tls;
  if (endsAtMs === undefined) return [finding("certificate-unreadable", certificate, problem)];
  const leftMs = endsAtMs - nowMs;
  const at = new Date(endsAtMs).toISOString();
  if (leftMs <= 0) return [finding("certificate-ended", certificate, `it ended at ${at}`)];
  if (leftMs > certificateDays * dayMs) return [];
  return [finding("certificate-ends", certificate, `it ends in ${counted(Math.floor(leftMs / dayMs), "day")}, at ${at}`)];
}

function findPeers({ peers }: SetUpFacts, nowMs: number): Finding[] {
  if (peers === undefined) return [];
  const { certificate, endsAtMs, problem } = peers;
  if (endsAtMs === undefined) return [finding("cluster-certificate-unusable", certificate, problem)];
  const leftMs = endsAtMs - nowMs;
  const at = new Date(endsAtMs).toISOString();
  if (leftMs <= 0) return [finding("cluster-certificate-ended", certificate, `it ended at ${at}`)];
  if (leftMs > certificateDays * dayMs) return [];
  return [finding("cluster-certificate-ends", certificate, `it ends in ${counted(Math.floor(leftMs / dayMs), "day")}, at ${at}`)];
}

function findShape({ copies, extentNodes, faultDomains, notStarted }: SetUpFacts): Finding[] {
  const found: Finding[] = [];
  if (notStarted.length > 0)
    found.push(
      ...notStarted.map((name) => finding("node-not-started", name, "its disk is in the data folder", extentNodes + notStarted.length)),
    );
  if (copies > extentNodes)
    found.push(finding("copies-not-possible", "", `copies is ${copies}, and ${counted(extentNodes, "extent node", ["runs", "run"])}`));
  const domains = new Set(faultDomains.slice(0, extentNodes)).size;
  const wanted = Math.min(copies, extentNodes);
  if (domains > 0 && domains < wanted)
    found.push(finding("domains-too-few", "", `${counted(domains, "fault domain")} for ${wanted} copies`, domains));
  return found;
}

const findFiles = ({ openPaths, dataDir }: SetUpFacts): Finding[] =>
  openPaths.length === 0 ? [] : [finding("files-open", openPaths.length === 1 ? (openPaths[0] ?? dataDir) : dataDir, fewNames(openPaths))];
