/** Callers that ask for extents to be coded and replicated again, drain nodes, and read, all while faults come. */
import { equalBytes, type Prng } from "@stamp/base";
import type { ExtentReader } from "@stamp/stream-client";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { type ExtentInfo, ExtentState, NodeDuty } from "@stamp/wire";
import type { JudgedPlace, StreamJudge } from "../judges/stream-judge.ts";
import { recordBytes } from "../judges/stream-judge.ts";
import { by } from "../streams.ts";
import type { ManagerCaller } from "./manager-caller.ts";

export const profileName = "rs-4-2";
const readTimeoutMs = 2_000;
/** Time within which an answer comes, also while faults do. */
const toldWithinMs = 300_000;

export interface Stage {
  readonly sim: Simulation;
  readonly judge: StreamJudge;
  readonly manager: ManagerCaller;
  readonly endMs: number;
  /** Longest time between two calls for an extent, in milliseconds. */
  readonly codesEveryMs: number;
  /** Number of extents that are coded again and again, the oldest; undefined: any extents. */
  readonly codesFew: number | undefined;
  /** Node whose extents are coded: those that have their first replica on it; undefined: any extents. */
  readonly codesOf: string | undefined;
}

/** Asks for sealed extents, any of them, to be stored as fragments, or as replicas again. */
export async function codeAndDecode({ sim, judge, manager, endMs, codesEveryMs, codesFew, codesOf }: Stage): Promise<void> {
  const prng = sim.prng.fork();
  while (sim.nowMs < endMs) {
    await sim.sleep(prng.float() * codesEveryMs);
    const sealed = (await manager.extents())?.filter(({ state }) => state === ExtentState.SEALED);
    const extents = few(sealed ?? [], codesFew, codesOf).filter(({ attempt }) => attempt === "");
    if (extents.length === 0) continue;
    const replicated = extents.filter(({ coded }) => coded === undefined);
    const isCoding = replicated.length > 0 && prng.chance(codesFew === undefined ? 0.75 : 0.5);
    // Any of them, or a coded one if the few are to change as often as can be.
    const others = codesFew === undefined ? [] : extents.filter((each) => each.coded !== undefined);
    const { location, coded } = prng.pick(isCoding ? replicated : others.length > 0 ? others : extents);
    const id = location?.extentId ?? 0n;
    const call = coded === undefined ? "code" : "replicate";
    const begun = await (coded === undefined ? manager.code(id, profileName) : manager.replicate(id));
    judge.count(begun.ok ? `${call} begun` : `${call} ${begun.failure.reason}`);
  }
}

/** The oldest ones that hold bytes; all, if their number is not given. */
function few(sealed: readonly ExtentInfo[], count: number | undefined, node: string | undefined): readonly ExtentInfo[] {
  if (count === undefined) return sealed;
  const some = sealed.filter(({ location, nodeIds }) => location?.sealedLengthBytes !== 0n && (node === undefined || nodeIds[0] === node));
  return some.slice(0, count);
}

/** One node after another is to be empty, and takes part again after a while. */
export async function drainNodes({ sim, judge, manager, endMs }: Stage, nodes: readonly string[]): Promise<void> {
  const prng = sim.prng.fork();
  while (sim.nowMs < endMs) {
    await sim.sleep(prng.float() * 12_000);
    const node = prng.pick(nodes);
    if (!(await manager.setDuty(node, NodeDuty.DRAINING))) continue;
    judge.count("nodes drained");
    await sim.sleep(prng.float() * 12_000);
    await takesPart(sim, manager, node);
  }
}

/** A person takes any fragment on any node for a stray, and has it deleted: only what no record explains goes. */
export async function deleteStrays({ sim, judge, manager, endMs }: Stage, nodes: readonly string[]): Promise<void> {
  const prng = sim.prng.fork();
  while (sim.nowMs < endMs) {
    await sim.sleep(prng.float() * 400);
    const node = prng.pick(nodes);
    const paths = sim
      .disk(node)
      .paths()
      .filter((path) => path.endsWith(".fragment"));
    if (paths.length === 0) continue;
    const [id, version] = /([0-9a-f]{14})-([0-9a-f]{14})-/.exec(prng.pick(paths))?.slice(1) ?? [];
    const deleted = await manager.deleteStray(node, BigInt(`0x${id}`), BigInt(`0x${version}`));
    judge.count(deleted.ok ? "strays deleted" : `strays ${deleted.failure.reason}`);
  }
}

/** A drained node takes part again, as soon as a manager can be told. */
export async function takesPart(sim: Simulation, manager: ManagerCaller, node: string): Promise<void> {
  const what = `${node} takes part again`;
  await by(sim, sim.nowMs + toldWithinMs, what, async () => ((await manager.setDuty(node, NodeDuty.SERVING)) ? true : undefined));
}

/** Reads places that were acknowledged. While faults come a read may fail; what it gives is what was written. */
export async function readPlaces({ sim, judge, endMs }: Stage, reader: ExtentReader): Promise<void> {
  const prng = sim.prng.fork();
  while (sim.nowMs < endMs) {
    await sim.sleep(prng.float() * 80);
    const place = anyOf(prng, judge.places());
    if (place === undefined) continue;
    const read = await readPlace(reader, place, readTimeoutMs);
    judge.count(read === undefined ? "places read" : "places not read while faults came");
  }
}

const anyOf = (prng: Prng, places: readonly JudgedPlace[]): JudgedPlace | undefined =>
  places.length === 0 ? undefined : prng.pick(places);

/** Returns undefined if it holds what was written. Else why it could not be read. Other bytes break a promise. */
export async function readPlace(
  reader: ExtentReader,
  { stream, record, place }: JudgedPlace,
  timeoutMs: number,
): Promise<string | undefined> {
  const { offsetBytes, lengthBytes } = place;
  const read = await reader.read({ extentId: Number(place.extent), offsetBytes, lengthBytes }, { timeoutMs });
  if (!read.ok) return read.failure.message;
  if (equalBytes(read.value, recordBytes(stream, record, lengthBytes))) return undefined;
  throw new BrokenPromise(`${stream} record ${record.epoch}/${record.sequence}: other bytes were read at ${place.extent}:${offsetBytes}`);
}
