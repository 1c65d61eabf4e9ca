/** Findings about ranges, partition servers and the requests of clients. */
import type { RangePartition } from "@stamp/wire";
import { bytesText } from "../../print.ts";
import { servesNot } from "../certain.ts";
import { counted, seconds } from "../counted.ts";
import { factAt, numberAt, type ProcessFacts, type RoleFacts, type StampFacts } from "../facts.ts";
import { fewNames } from "../few.ts";
import { type Code, type Finding, finding } from "../kinds/kinds.ts";
import { findingOf, servesNow } from "./find-processes.ts";

const slowMs = 1_000;
/** Fewer say nothing of one in a hundred. */
const requestsMin = 100;
const failedAppendsMin = 3;
const mapOldMs = 30_000;
const copyBehindMs = 300_000;

export function findRanges(facts: StampFacts): Finding[] {
  return [
    ...findLayer(facts),
    ...findCopies(facts),
    ...facts.processes.flatMap(findAdmission),
    ...findFrontEnds(facts),
    ...findAppends(facts),
    ...findLossy(facts),
  ];
}

function findLayer(facts: StampFacts): Finding[] {
  const leader = findingOf(facts, "partition-manager").find(({ answer }) => answer?.state === "leader");
  const { partitionLayer } = facts;
  if (partitionLayer === undefined) {
    // With no leader, no-partition-manager says more.
    return leader === undefined ? [] : [finding("ranges-unknown", leader.name, `${leader.name} leads and did not answer in time`)];
  }
  const processes = findingOf(facts, "partition-server");
  const found = findStates(partitionLayer.ranges, new Set(processes.filter((each) => servesNot(each, facts)).map(({ name }) => name)));
  const answering = processes.filter(servesNow);
  if (processes.length === 1) found.push(finding("single-server", processes[0]?.name ?? "", "there is one partition server"));
  for (const { server, up, load } of partitionLayer.servers) {
    if (!up && answering.some(({ name }) => name === server))
      found.push(finding("server-away", server, "its lease has ended for the partition manager"));
    if ((load?.throttledPerSecond ?? 0) > 0)
      found.push(finding("throttled", server, `${load?.throttledPerSecond.toFixed(1)} requests a second, over the last 10 s`));
  }
  return found;
}

/** Makes one finding of all ranges in a state: there can be thousands. */
function findStates(ranges: readonly RangePartition[], away: ReadonlySet<string>): Finding[] {
  const states = Map.groupBy(ranges, ({ server, loaded, change }): Code | "served" => {
    if (server === "") return "range-unassigned";
    if (away.has(server)) return "range-server-away";
    if (!loaded) return "range-loading";
    return change === "" ? "served" : "range-changing";
  });
  return [...states].flatMap(([code, all]) => {
    if (code === "served") return [];
    const [first] = all;
    const subject = all.length === 1 ? (first?.rangeId ?? "") : "";
    const what = all.map(
      ({ rangeId, server, change }) => `${rangeId}${server === "" ? "" : ` at ${server}`}${change === "" ? "" : `: ${change}`}`,
    );
    return [finding(code, subject, `${all.length} of ${counted(ranges.length, "range")}: ${fewNames(what)}`)];
  });
}

/** Finds troubles of accounts' copies, as the partition servers that ship to them tell. */
function findCopies(facts: StampFacts): Finding[] {
  return findingOf(facts, "partition-server").flatMap(({ name, answer }) => {
    const at = (figure: string): number => numberAt(answer?.facts, `geo.${figure}`);
    const found: Finding[] = [];
    if (at("lagMs") > copyBehindMs) {
      const pending = `${counted(at("pendingCommits"), "commit")} of ${bytesText(at("pendingBytes"))} are not there`;
      found.push(finding("copy-behind", name, `Last Sync Time is ${seconds(at("lagMs"))} ago; ${pending}`));
    }
    if (at("seeding") > 0) {
      const done = `about ${bytesText(at("seededBytes"))} of ${bytesText(at("seedBytes"))}`;
      found.push(finding("copy-not-complete", name, `${counted(at("seeding"), "range")}, ${done}`));
    }
    if (at("failing") > 0) found.push(finding("copy-refused", name, `the last call failed for ${counted(at("failing"), "range")}`));
    return found;
  });
}

interface LossyRange {
  readonly rangeId: string;
  readonly losses?: { readonly commits: number; readonly checkpoints: number };
}

function findLossy(facts: StampFacts): Finding[] {
  return findingOf(facts, "partition-server").flatMap(({ answer, name }) => {
    const ranges = (factAt(answer?.facts, "ranges") as readonly LossyRange[] | undefined) ?? [];
    const lossy = ranges.flatMap(({ rangeId, losses }) =>
      losses === undefined ? [] : [`${rangeId} (${counted(losses.commits, "commit")}, ${counted(losses.checkpoints, "checkpoint")})`],
    );
    return lossy.length === 0 ? [] : [finding("range-lossy", name, fewNames(lossy))];
  });
}

function findAdmission({ name, answer }: ProcessFacts): Finding[] {
  return ["admission", "dataAdmission"].flatMap((gate) => {
    const found: Finding[] = [];
    const shed = (factAt(answer?.facts, `${gate}.shed`) as readonly string[] | undefined) ?? [];
    if (shed.length > 0) found.push(finding("account-shed", name, `in the last second: ${fewNames(shed)}`));
    const [atWork, waiting] = [numberAt(answer?.facts, `${gate}.atWork`), numberAt(answer?.facts, `${gate}.waiting`)];
    // On a busy machine the few requests of an idle process take long, too: nobody waits because of them.
    if (factAt(answer?.facts, `${gate}.standing`) === true && waiting > 0) {
      found.push(finding("overloaded", name, `${counted(atWork, "request")} at work, ${counted(waiting, "other", ["waits", "wait"])}`));
    }
    return found;
  });
}

interface Recent {
  readonly count: number;
  readonly p99Ms: number;
}

/** Returns the last minute's requests at a front-end, by door, class and code. */
function tookOf(facts: RoleFacts): { readonly what: string; readonly code: string; readonly recent: Recent }[] {
  const doors = { blob: "took", queue: "queue.took", table: "table.took" };
  return Object.entries(doors).flatMap(([door, path]) =>
    Object.entries((factAt(facts, path) as RoleFacts | undefined) ?? {}).flatMap(([kind, codes]) =>
      Object.keys((codes as RoleFacts | undefined) ?? {}).map((code) => {
        const at = `${path}.${kind}.${code}.recent`;
        return { what: `${door} ${kind}`, code, recent: { count: numberAt(facts, `${at}.count`), p99Ms: numberAt(facts, `${at}.p99Ms`) } };
      }),
    ),
  );
}

function findFrontEnds(facts: StampFacts): Finding[] {
  return findingOf(facts, "front-end").flatMap(({ name, answer }) => {
    if (answer === undefined) return [];
    const found: Finding[] = [];
    for (const { what, code, recent } of tookOf(answer.facts)) {
      if (code === "5xx" && recent.count > 0)
        found.push(finding("requests-fail", name, `${counted(recent.count, "request")} (${what}) in the last minute`));
      if (code === "2xx" && /(read|write)$/.test(what) && recent.count >= requestsMin && recent.p99Ms > slowMs)
        found.push(finding("requests-slow", name, `1 of 100 (${what}) took ${seconds(recent.p99Ms)}`));
    }
    const mapAgeMs = numberAt(answer.facts, "mapAgeMs");
    if (mapAgeMs > mapOldMs) found.push(finding("map-old", name, `it has heard nothing of the map for ${seconds(mapAgeMs)}`));
    return found;
  });
}

const findAppends = (facts: StampFacts): Finding[] =>
  findingOf(facts, "extent-node").flatMap(({ name, answer }) => {
    const failed = numberAt(answer?.facts, "took.appendFailed.recent.count");
    return failed < failedAppendsMin ? [] : [finding("appends-fail", name, `${failed} appends in the last minute`)];
  });
