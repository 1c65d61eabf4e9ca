/**
 * Drills of erasure coding: nodes with fragments die, one is slow, and extents are coded while clients write. Each runs on a cluster of seven
 * extent nodes with small extents, where the policy codes what has been sealed for two seconds.
 */
import { profileOf } from "@stamp/erasure";
import type { ExtentInfo } from "@stamp/wire";
import type { Drill } from "../drill.ts";
import type { DrillContext } from "../faults.ts";
import type { DrillTarget } from "../target.ts";
import { type CodedBlobs, codingStatusOf, isSealed, lacksPieces } from "./coded-blobs.ts";

const mebibyte = 1_024 * 1_024;

/** Settings of the drills' own cluster, as keys of the configuration. */
export const codingCluster = {
  extentNodes: 7,
  repairAfterMs: 20_000,
  erasureCoding: { profile: "rs-4-2", afterSeconds: 2, minBytes: 2 * mebibyte },
} as const;

/** Settings of that cluster by role. */
export const codingRoles = {
  "partition-server": { extentTargetBytes: 12 * mebibyte },
  "stream-manager": { deletionGraceMs: 3_000 },
} as const;

/** The policy of a cluster that runs already codes extents at least this soon, in seconds, or a drill would wait too long. */
const afterSecondsMax = 60n;
const pollMs = 500;
const betweenKillsMs = 4_000;
/** Longer than a stream manager needs to notice that a node is down (nodeDownAfterMs, 3 s). */
const heldMs = 5_000;
const wholeWithinMs = 120_000;
const slowTimes = 8;
/** Shorter than nodeDownAfterMs: the node is slow, and nobody calls it down. */
const stoppedMs = 2_000;
const runsMs = 500;
const codedUnderLoad = 8;
const codedWithinMs = 60_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns why no extent would be coded soon on this cluster; undefined: a drill of coding can run on it. */
export async function unfitForCoding(target: Pick<DrillTarget, "inspector">): Promise<string | undefined> {
  const { profile, whyNone, pause: paused, afterSeconds } = await codingStatusOf(target);
  if (profile === "") return `no extent is coded on this cluster: ${whyNone}`;
  if (paused !== undefined) return "coding is paused on this cluster; go on: ./stamp coding resume";
  if (afterSeconds > afterSecondsMax) return `extents are coded after ${afterSeconds} s on this cluster (erasureCoding.afterSeconds)`;
  return undefined;
}

/** Returns the nodes of one extent's fragments, data before coding fragments, as many as the code can lose. */
export function nodesToLose({ coded, fragmentNodeIds }: Pick<ExtentInfo, "coded" | "fragmentNodeIds">, from = 0): readonly string[] {
  const losses = profileOf(coded?.profile ?? "")?.losses ?? 0;
  const rotated = [...fragmentNodeIds.slice(from), ...fragmentNodeIds.slice(0, from)];
  return [...new Set(rotated)].slice(0, losses);
}

/** Returns the node with the most data fragments of these extents. */
export function nodeWithMostData(extents: readonly Pick<ExtentInfo, "coded" | "fragmentNodeIds">[]): string | undefined {
  const counts = new Map<string, number>();
  for (const { coded, fragmentNodeIds } of extents) {
    for (const nodeId of fragmentNodeIds.slice(0, profileOf(coded?.profile ?? "")?.data ?? 0))
      counts.set(nodeId, (counts.get(nodeId) ?? 0) + 1);
  }
  return [...counts].toSorted(([, a], [, b]) => b - a)[0]?.[0];
}

const blobsOf = ({ blobs }: DrillContext): CodedBlobs => {
  if (blobs === undefined) throw new Error("this drill has no coded blobs");
  return blobs;
};

const inMebibytes = (bytes: bigint): string => `${(Number(bytes) / mebibyte).toFixed(0)} MiB`;

async function writeAndCode(context: DrillContext): Promise<void> {
  const blobs = blobsOf(context);
  await blobs.write();
  const coded = await blobs.untilCoded();
  const { codedBytes, fragmentBytes } = await codingStatusOf(context.target);
  const ratio = codedBytes === 0n ? "" : `, ${(Number(fragmentBytes) / Number(codedBytes)).toFixed(2)} bytes for a byte`;
  context.note(`${coded.length} extents with blobs are coded (${coded[0]?.coded?.profile})${ratio}`);
}

async function untilWhole({ target, note }: DrillContext): Promise<void> {
  const untilMs = performance.now() + wholeWithinMs;
  for (;;) {
    const [extents, nodes] = await Promise.all([target.inspector.extents(), target.inspector.nodes()]);
    const lacking = extents.filter(lacksPieces);
    if (lacking.length === 0 && nodes.every(({ up }) => up)) break;
    if (performance.now() > untilMs) throw new Error(`${lacking.length} extents lack pieces after ${wholeWithinMs / 1_000} s`);
    await pause(pollMs);
  }
  note("every node is up, every extent has its pieces");
}

async function startAll({ target, note }: DrillContext, names: readonly string[]): Promise<void> {
  for (const name of names) await target.ask({ do: "start", name });
  note(`${names.join(", ")} started again`);
}

async function killFragments(context: DrillContext): Promise<void> {
  const blobs = blobsOf(context);
  const { target, fault, note } = context;
  const [first] = await blobs.untilCoded();
  const names = first === undefined ? [] : nodesToLose(first);
  for (const [at, name] of names.entries()) {
    if (at > 0) await pause(betweenKillsMs);
    fault(`kill -9 ${name}, it stays down (${at + 1} of ${names.length} that the code can lose)`);
    await target.ask({ do: "hold", name });
  }
  await pause(heldMs);
  await blobs.readAll("with as many nodes down as the code can lose");
  note("every coded blob was read without them");
  await startAll(context, names);
  await untilWhole(context);

  const [second] = await blobs.untilCoded();
  const others = second === undefined ? [] : nodesToLose(second, names.length);
  fault(`kill -9 ${others.join(", ")} at once, and their disks are emptied`);
  await Promise.all(others.map((name) => target.ask({ do: "hold", name })));
  await Promise.all(others.map((name) => target.hand(name, { do: "empty" })));
  await pause(heldMs);
  await blobs.readAll("with as many disks lost as the code can lose");
  note("every coded blob was read without them");
  await startAll(context, others);
}

async function slowFragment(context: DrillContext): Promise<void> {
  const blobs = blobsOf(context);
  const { target, fault, note } = context;
  const name = nodeWithMostData(await blobs.untilCoded());
  if (name === undefined) throw new Error("no node has a fragment");
  fault(`${name} is slow: SIGSTOP for ${stoppedMs} ms, SIGCONT for ${runsMs} ms, ${slowTimes} times`);
  for (let time = 0; time < slowTimes; time++) {
    await target.ask({ do: "signal", name, signal: "SIGSTOP" });
    try {
      await pause(stoppedMs);
    } finally {
      await target.ask({ do: "signal", name, signal: "SIGCONT" });
    }
    await pause(runsMs);
  }
  note(`${name} goes on as before`);
}

const setPaused = ({ target }: DrillContext, paused: boolean): Promise<unknown> =>
  target.inspector.change((manager, timeoutMs) => manager.setCodingPaused({ paused, note: "drill code-under-load" }, { timeoutMs }));

async function codeUnderLoad(context: DrillContext): Promise<void> {
  const { target, fault, note } = context;
  const before = await codingStatusOf(target).finally(() => {
    fault("coding begins: the pause of the policy ends");
    return setPaused(context, false);
  });
  const startMs = performance.now();
  for (let coded = before.codedExtents; ; await pause(pollMs)) {
    const status = await codingStatusOf(target);
    const waits = `${status.extentsWaiting} wait, ${status.codingsRunning} are being coded`;
    if (status.codedExtents > coded) note(`${status.codedExtents} extents are coded, ${inMebibytes(status.codedBytes)}; ${waits}`);
    coded = status.codedExtents;
    if (coded - before.codedExtents >= codedUnderLoad) return;
    if (performance.now() - startMs > codedWithinMs)
      throw new Error(
        `${coded - before.codedExtents} extents were coded in ${codedWithinMs / 1_000} s; ${waits}; ${status.failures.join("; ")}`,
      );
  }
}

export const codingDrills: readonly Drill[] = [
  {
    name: "kill-fragments",
    about:
      "kill -9 as many nodes as the code can lose: one after another, then others at once whose disks are emptied; coded blobs are read meanwhile",
    holdUpAimMs: 3_000,
    afterFaultMs: 12_000,
    codedReads: { aimMs: 1_000 },
    clients: { pauseMs: 20, largePauseMs: 1_000 },
    cluster: codingCluster,
    roles: codingRoles,
    unfit: unfitForCoding,
    prepare: writeAndCode,
    run: killFragments,
    mend: async (context) => {
      // The loss of the disks is noticed before anybody asks whether all is whole.
      await pause(heldMs);
      await untilWhole(context);
    },
  },
  {
    name: "slow-fragment",
    about: "SIGSTOP and SIGCONT the node with the most data fragments in turns for 20 s: reads of coded blobs take the other fragments",
    holdUpAimMs: 2_500,
    afterFaultMs: 22_000,
    codedReads: { aimMs: 1_000 },
    clients: { pauseMs: 20, largePauseMs: 1_000 },
    cluster: codingCluster,
    roles: codingRoles,
    unfit: unfitForCoding,
    prepare: writeAndCode,
    run: slowFragment,
  },
  {
    name: "code-under-load",
    about: "begin to code sealed extents while clients write and read blobs in them",
    holdUpAimMs: 500,
    afterFaultMs: 15_000,
    codedReads: { aimMs: 1_000 },
    clients: { pauseMs: 20 },
    cluster: codingCluster,
    roles: codingRoles,
    unfit: unfitForCoding,
    prepare: async (context) => {
      await setPaused(context, true);
      try {
        await blobsOf(context).write();
      } catch (error) {
        await setPaused(context, false);
        throw error;
      }
      const waiting = (await blobsOf(context).extents()).filter(isSealed);
      context.note(`coding is paused; ${waiting.length} sealed extents with blobs wait`);
    },
    run: codeUnderLoad,
  },
];
