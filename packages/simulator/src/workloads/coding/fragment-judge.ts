/**
 * Judges the promises about coded extents from outside. While faults come: every fragment that a record names is on its disk, except on the
 * machines that may lose what was durable. In the end: every fragment is read whole, the coding fragments are what the data fragments give, and
 * the data fragments hold every acknowledged record.
 */
import { concatBytes, equalBytes } from "@stamp/base";
import { encodePlan, Kernel, type Profile, profileOf } from "@stamp/erasure";
import { fragmentBytesOf } from "@stamp/extent";
import type { World } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { ExtentFragments, type ExtentInfo, ExtentState } from "@stamp/wire";
import type { StreamJudge } from "../judges/stream-judge.ts";
import { recordBytes } from "../judges/stream-judge.ts";
import type { Stage } from "./callers.ts";

const lookEveryMs = 1_000;
/** An answer of a manager that leads no more may name a fragment that was deleted since. Two answers so far apart may not. */
export const believedAfterMs = 12_000;
const readTimeoutMs = 1_000;

const hex = (value: bigint | number, digits: number): string => value.toString(16).padStart(digits, "0");

/** Returns how the path of a fragment's file ends on a node's disk (docs/formats/fragment.md). */
const fragmentFileName = (extentId: bigint, version: bigint, index: number): string =>
  `${hex(extentId, 14)}-${hex(version, 14)}-${hex(index, 2)}.fragment`;

/** Looks at every record and every disk, again and again. */
export async function fragmentsAreThere({ sim, judge, manager, endMs }: Stage, fragile: readonly string[]): Promise<void> {
  const missingSince = new Map<string, number>();
  while (sim.nowMs < endMs) {
    await sim.sleep(lookEveryMs);
    const askedMs = sim.nowMs;
    const extents = await manager.extents();
    if (extents === undefined) continue;
    const missing = new Set(extents.flatMap((extent) => missingOf(sim, extent, fragile)));
    judge.count("looks at coded extents", extents.filter(({ coded }) => coded !== undefined).length);
    for (const key of missingSince.keys()) if (!missing.has(key)) missingSince.delete(key);
    for (const key of missing) {
      const sinceMs = missingSince.get(key) ?? sim.nowMs;
      missingSince.set(key, sinceMs);
      if (askedMs - sinceMs > believedAfterMs) throw new BrokenPromise(`${key}, which its extent's record names, is not on its disk`);
    }
  }
}

function missingOf(sim: Simulation, { location, coded, fragmentNodeIds, state }: ExtentInfo, fragile: readonly string[]): string[] {
  if (state !== ExtentState.SEALED) return [];
  const id = location?.extentId ?? 0n;
  return (coded?.fragments ?? []).flatMap(({ version }, index) => {
    const node = fragmentNodeIds[index] ?? "";
    const file = fragmentFileName(id, version, index);
    const isThere = sim
      .disk(node)
      .paths()
      .some((path) => path.endsWith(file));
    return isThere || fragile.includes(node) ? [] : [`fragment ${index} of extent ${id}, version ${version}, on ${node}`];
  });
}

/** Returns undefined for a fragment can't be read yet, and `say` is told which. */
export async function fragmentsAreWhole(
  world: World,
  { location, coded }: ExtentInfo,
  judge: StreamJudge,
  say: (problem: string) => void,
): Promise<true | undefined> {
  const id = location?.extentId ?? 0n;
  const profile = profileOf(coded?.profile ?? "") as Profile;
  const lengthBytes = fragmentBytesOf(Number(location?.sealedLengthBytes), profile.data);
  const contents: Uint8Array[] = [];
  for (const [index, { version, address }] of (coded?.fragments ?? []).entries()) {
    const request = { extentId: id, version, index, offsetBytes: 0n, lengthBytes };
    const read = await world.transport.client(address, ExtentFragments).readFragment(request, { timeoutMs: readTimeoutMs });
    if (!read.ok) {
      say(`fragment ${index} of extent ${id} on ${address}: ${read.failure.message}`);
      return undefined;
    }
    contents.push(read.value.payload);
  }
  if (contents.length !== profile.fragments)
    throw new BrokenPromise(`extent ${id} has ${contents.length} of ${profile.fragments} fragments`);
  compareCoding(id, profile, contents);
  const content = concatBytes(contents.slice(0, profile.data));
  for (const { stream, record, place } of judge.places()) {
    if (place.extent !== id) continue;
    const held = content.subarray(place.offsetBytes, place.offsetBytes + place.lengthBytes);
    if (!equalBytes(held, recordBytes(stream, record, place.lengthBytes)))
      throw new BrokenPromise(`the fragments of extent ${id} hold other bytes than record ${record.epoch}/${record.sequence} of ${stream}`);
  }
  judge.count("coded extents found whole");
  return true;
}

function compareCoding(id: bigint, profile: Profile, contents: readonly Uint8Array[]): void {
  const lengthBytes = contents[0]?.length ?? 0;
  const kernel = new Kernel(profile.fragments, lengthBytes);
  for (const [index, content] of contents.slice(0, profile.data).entries()) kernel.lane(index).set(content);
  const plan = encodePlan(profile);
  kernel.run(plan, (index) => index, lengthBytes);
  for (const index of plan.outputs)
    if (!equalBytes(kernel.lane(index).subarray(0, lengthBytes), contents[index] as Uint8Array))
      throw new BrokenPromise(`fragment ${index} of extent ${id} is not what the data fragments give`);
}
