/**
 * The metadata are restored from a copy on an extent node: first, by mistake, from one of before some extents were coded, then from one of after
 * it. In between a person has fragments deleted that no record explains. The older record knows nothing of these fragments, and they may be all that
 * is left: what the newer record names must be there when that one is back.
 *
 * No owner appends and no attempt is begun meanwhile: both would be lost with the metadata.
 */
import { unwrap } from "@stamp/base";
import { metadataStoreName, restoreMetadata } from "@stamp/lock-service";
import { inMemory, MetadataClient, openSnapshot, type SnapshotSource } from "@stamp/metadata-store";
import type { Clock } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { type ExtentInfo, ExtentState } from "@stamp/wire";
import { by } from "../streams.ts";
import { deleteStrays, profileName, type Stage } from "./callers.ts";

const codedExtentsMax = 6;
/** Copies are taken every 30 s. */
const copyWithinMs = 90_000;
const codedWithinMs = 240_000;
const leadsWithinMs = 120_000;
const askTimeoutMs = 1_000;
const deletesForMs = 20_000;
/** Half a year: virtual time begins with the year from which a restore counts its seconds. */
const laterMs = 180 * 86_400_000;
const copiesFolder = "metadata-copies";

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

/** Returns a copy that was taken after this moment. */
async function copyOfNow(sim: Simulation, lockService: string, keeper: string): Promise<SnapshotSource> {
  const metadata = new MetadataClient(sim.world("person"), lockService);
  const version = await by(sim, sim.nowMs + leadsWithinMs, "the metadata store answers", async () => {
    const position = await metadata.position(askTimeoutMs);
    return position.ok ? position.value.version : undefined;
  });
  const { disk } = sim.world(keeper);
  return by(sim, sim.nowMs + copyWithinMs, `${keeper} has a copy of the metadata`, async () => {
    const names = await disk.list(copiesFolder);
    const name = names.find((each) => Number(/^(\d+)\.snapshot$/.exec(each)?.[1]) >= version);
    if (name === undefined) return undefined;
    const file = await disk.open(`${copiesFolder}/${name}`);
    const bytes = await file.read(0, await file.sizeBytes());
    await file.close();
    return inMemory(bytes.slice());
  });
}

/** Takes the copy into an empty metadata store. */
async function restore(sim: Simulation, lockService: string, copy: SnapshotSource): Promise<void> {
  await sim.stop(lockService);
  sim.keyValue(lockService).drop(metadataStoreName);
  const offline = sim.offline(lockService);
  const snapshot = unwrap(await openSnapshot(copy, (bytes, seed) => offline.digest.crc32c(bytes, seed)));
  const { clock } = offline;
  const later: Clock = {
    monotonicMs: () => clock.monotonicMs(),
    suspendedMs: () => 0,
    after: (delayMs, call) => clock.after(delayMs, call),
    wallMs: () => clock.wallMs() + laterMs,
  };
  unwrap(await restoreMetadata({ ...offline, clock: later }, snapshot));
  sim.note("the metadata are restored from a copy", `taken at transaction ${snapshot.version}`);
  sim.restart(lockService);
}

async function leads(stage: Stage): Promise<void> {
  await extentsOf(stage);
}
