/**
 * Every extent node is down, for so long that a person seals what waits although acknowledged data are lost by it; then the nodes come
 * back with all they had. What was given up must not be given to anybody again: another reader, or the same one later, would not find it.
 */
import { LeaderCalls } from "@stamp/metadata-store";
import type { World } from "@stamp/ports";
import { sleep } from "@stamp/ports";
import type { Simulation } from "@stamp/virtual-time";
import { BrokenPromise } from "@stamp/virtual-time";
import { ExtentNode, StreamManager } from "@stamp/wire";
import type { SimulatedCluster } from "../cluster.ts";
import type { StreamJudge } from "../judges/stream-judge.ts";

/** The stream manager says after 10 s that it can't seal an extent. */
const patienceMs = 20_000;
const spreadMs = 3_000;
const watchMs = 6_000;

/** Once, at a time of the seed's choice. */
export async function acceptLoss(sim: Simulation, cluster: SimulatedCluster, judge: StreamJudge): Promise<void> {
  const prng = sim.prng.fork();
  const world = sim.world("person");
  const nodes = cluster.processes.filter((name) => name.startsWith("extent-node-"));
  await sim.sleep(1_000 + prng.float() * 6_000);
  sim.note("every extent node is down");
  for (const node of nodes) sim.crash(node, { stayDown: true });
  const endMs = sim.nowMs + patienceMs;
  while (sim.nowMs < endMs && unsealable(sim, cluster).length === 0) await sim.sleep(500);
  for (const extentId of unsealable(sim, cluster)) await giveUp(sim, world, cluster, judge, extentId, nodes);
  for (const node of nodes) void sim.sleep(prng.float() * spreadMs).then(() => sim.restart(node));
}

/** Returns the extents that the status shows as unsealable. */
function unsealable(sim: Simulation, cluster: SimulatedCluster): bigint[] {
  const waits = cluster.processes.flatMap((name) => (sim.role(name)?.status.facts.waits ?? []) as readonly string[]);
  return waits.flatMap((text) => /^extent (\d+) can't be sealed/.exec(text)?.[1] ?? []).map(BigInt);
}

async function giveUp(
  sim: Simulation,
  world: World,
  cluster: SimulatedCluster,
  judge: StreamJudge,
  extentId: bigint,
  nodes: readonly string[],
): Promise<void> {
  const manager = new LeaderCalls(world, { lockService: cluster.lockService, leaseName: "stream-manager" });
  const sealed = await manager.call(10_000, (address, timeoutMs) =>
    world.transport.client(address, StreamManager).sealAcceptingLoss({ extentId, note: "all its nodes are gone" }, { timeoutMs }),
  );
  const lengthBytes = sealed.ok && sealed.value.loss !== undefined ? Number(sealed.value.location?.sealedLengthBytes ?? 0n) : undefined;
  if (lengthBytes === undefined) return;
  judge.count("extents sealed with loss accepted");
  judge.lossAccepted(extentId, lengthBytes);
  sim.background(notServed(sim, world, judge, extentId, nodes));
}

async function notServed(sim: Simulation, world: World, judge: StreamJudge, extentId: bigint, nodes: readonly string[]): Promise<void> {
  const endMs = sim.nowMs + spreadMs + watchMs;
  while (sim.nowMs < endMs) {
    for (const { record, place } of judge.givenUp(extentId)) {
      const { offsetBytes, lengthBytes } = place;
      for (const node of nodes) {
        const request = { extentId, offsetBytes: BigInt(offsetBytes), lengthBytes };
        const read = await world.transport.client(node, ExtentNode).read(request, { timeoutMs: 500 });
        if (read.ok)
          throw new BrokenPromise(`record ${record.epoch}/${record.sequence} was given up with extent ${extentId}, and ${node} has it`);
        judge.count("refused reads of what was given up");
      }
    }
    await sleep(world.clock, 50);
  }
}
