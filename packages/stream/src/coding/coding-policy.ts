/**
 * Decides which sealed extents become fragments by themselves, and in which code (docs/design/erasure-coding.md "Policy"). Pure: the configuration
 * and what is known of nodes and extents come in.
 *
 * Invariants:
 * - Extents of commit logs and of metadata stay replicas: a range is loaded by reading them, and loading must not wait for a decoding.
 * - An extent is coded only if every replica that it should have is intact and reachable: its redundancy never falls while it changes.
 */
import { type Profile, type ProfileName, profileNames, profileOf } from "@stamp/erasure";
import type { ExtentRecord } from "../records.ts";
import { notCodable } from "./plan-coding.ts";

export interface CodingPolicy {
  /** Profile for coding. `auto`: widest code that the fault domains carry with one domain to spare. `off`: none. */
  readonly profile: ProfileName | "auto" | "off";
  /** Time since an extent was seen sealed before it is coded, in seconds: what is young is read most, and deleted soonest. */
  readonly afterSeconds: number;
  /** Sealed length below which an extent stays replicas, in bytes: each fragment is rounded up to 64 KiB. */
  readonly minBytes: number;
}

/** Extent nodes below which `auto` codes nothing: rs-4-2 needs six, and one is to spare. */
export const autoNodesMin = 7;

/**
 * Returns the code that extents get, or why they get none, in words. `domains`: the fault domain of each extent node that may hold
 * fragments, also of nodes that are away for a moment, so that the code does not change with every restart.
 */
export function chooseProfile(policy: Pick<CodingPolicy, "profile">, domains: readonly string[]): Profile | string {
  if (policy.profile === "off") return "erasureCoding is off";
  if (policy.profile !== "auto") {
    const profile = profileOf(policy.profile) as Profile;
    return carries(profile, domains) ? profile : lacks(profile, domains);
  }
  if (domains.length < autoNodesMin) return `auto needs ${autoNodesMin} extent nodes, ${domains.length} serve`;
  const profiles = profileNames.map((name) => profileOf(name) as Profile).sort((a, b) => b.fragments - a.fragments);
  const chosen = profiles.find((profile) => carries(profile, withoutLargest(domains)));
  const narrowest = profiles.at(-1) as Profile;
  return chosen ?? `${lacks(narrowest, domains)}; auto keeps one fault domain to spare`;
}

/** True if each fragment gets a node of its own, and no fault domain more than the code can lose. */
function carries(profile: Profile, domains: readonly string[]): boolean {
  const room = [...sizes(domains).values()].reduce((sum, count) => sum + Math.min(count, profile.losses), 0);
  return room >= profile.fragments;
}

const lacks = (profile: Profile, domains: readonly string[]): string =>
  `${profile.name} needs ${profile.fragments} extent nodes, at most ${profile.losses} of them in one fault domain: ` +
  `${domains.length} nodes in ${sizes(domains).size} fault domains serve`;

/** Returns the domains without every node of the one that has most nodes. */
function withoutLargest(domains: readonly string[]): string[] {
  const [largest] = [...sizes(domains)].sort(([, a], [, b]) => b - a);
  return domains.filter((domain) => domain !== largest?.[0]);
}

function sizes(domains: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const domain of domains) counts.set(domain, (counts.get(domain) ?? 0) + 1);
  return counts;
}

/** True for streams whose extents stay replicas: commit logs and metadata of ranges, and everything of the partition manager. */
export const keepsReplicas = (stream: string): boolean => stream.startsWith("/pm/") || /\/(commit-log|metadata)$/.test(stream);

export interface CodingFacts {
  readonly copies: number;
  /** True if the extent was seen sealed for at least `afterSeconds`. */
  readonly isOld: boolean;
  /** True if every replica is intact, and its node is up and is not to be emptied. */
  readonly isWhole: boolean;
}

/** Returns why the policy leaves an extent as it is, in words without numbers of this extent; undefined if it is to be coded. */
export function whyNotCoded(extent: ExtentRecord, policy: CodingPolicy, facts: () => CodingFacts): string | undefined {
  if (extent.phase === "sealed" && extent.coded === undefined) {
    if (keepsReplicas(extent.stream)) return "commit logs and metadata stay replicas";
    if ((extent.sealedLengthBytes ?? 0) < policy.minBytes) return `it is shorter than minBytes (${policy.minBytes})`;
  }
  const never = notCodable(extent);
  if (never !== undefined) return never;
  const { copies, isOld, isWhole } = facts();
  if (!isOld) return `it was not seen sealed for afterSeconds (${policy.afterSeconds}) yet`;
  if (extent.replicas.length < copies || !isWhole) return "a replica is missing, damaged, or on a node that is away or leaves";
  return undefined;
}
