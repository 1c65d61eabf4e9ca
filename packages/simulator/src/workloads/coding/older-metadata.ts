/**
 * The metadata are restored from a copy on an extent node: first, by mistake, from one of before some extents were coded, then from one of after
 * it. In between a person has fragments deleted that no record explains. The older record knows nothing of these fragments, and they may be all that
 * is left: what the newer record names must be there when that one is back.
 *
 * No owner appends and no attempt is begun meanwhile: both would be lost with the metadata.
 */
import { lockServiceAddresses, type SnapshotSource } from "@stamp/metadata-store";
import type { Simulation } from "@stamp/virtual-time";
import { type ExtentInfo, ExtentState } from "@stamp/wire";
import { copyOfNow, restoreCopy } from "../restores/restored-metadata.ts";
import { by } from "../streams.ts";
import { deleteStrays, profileName, type Stage } from "./callers.ts";

const codedExtentsMax = 6;
const codedWithinMs = 240_000;
const leadsWithinMs = 120_000;
const deletesForMs = 20_000;

export async function restoreOlderMetadata(stage: Stage, lockService: string, nodes: readonly string[]): Promise<void> {
  const { sim, judge } = stage;
  const person = { ...stage, endMs: Number.POSITIVE_INFINITY };
  const keeper = sim.prng.pick([...nodes]);
  const before = await copyOfNow(sim, lockService, keeper);
  const replicated = (await extentsOf(person)).filter(({ coded }) => coded === undefined).slice(0, codedExtentsMax);
  for (const extent of replicated) await becomesFragments(person, extent);
  const after = await copyOfNow(sim, lockService, keeper);
  await restore(sim, lockService, before);
  await leads(person);
  await deleteStrays({ ...person, endMs: sim.nowMs + deletesForMs }, nodes);
  await restore(sim, lockService, after);
  await leads(person);
  judge.count("extents coded after the copy that was restored", replicated.length);
}

async function extentsOf({ sim, manager }: Stage): Promise<readonly ExtentInfo[]> {
  const isMeant = ({ state, location }: ExtentInfo): boolean => state === ExtentState.SEALED && location?.sealedLengthBytes !== 0n;
  return by(sim, sim.nowMs + leadsWithinMs, "extents are listed", async () => (await manager.extents())?.filter(isMeant));
}

async function becomesFragments(stage: Stage, { location }: ExtentInfo): Promise<void> {
  const { sim, manager } = stage;
  const id = location?.extentId ?? 0n;
  await by(sim, sim.nowMs + codedWithinMs, `extent ${id} is coded`, async () => {
    const extent = (await manager.extents())?.find((each) => each.location?.extentId === id);
    if (extent?.attempt === "" && extent.coded === undefined) await manager.code(id, profileName);
    return extent?.attempt === "" && extent.coded !== undefined ? true : undefined;
  });
}

/** Takes the copy into an empty metadata store. */
async function restore(sim: Simulation, lockService: string, copy: SnapshotSource): Promise<void> {
  await restoreCopy(sim, lockService, copy);
  for (const name of lockServiceAddresses(lockService)) sim.restart(name);
}

async function leads(stage: Stage): Promise<void> {
  await extentsOf(stage);
}
