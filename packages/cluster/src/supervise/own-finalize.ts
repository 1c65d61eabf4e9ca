/**
 * A stamp on one machine raises its feature level by itself (docs/design/mixed-releases.md): its supervisor has started every process with one release,
 * so nobody would start the release before for a part of them. A stamp with a topology waits for `stamp upgrade finalize`.
 *
 * Invariant: the level is asked for only when every process of the plan runs, answers, and knows it. The stream manager checks what it knows besides.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { featureLevel } from "@stamp/base";
import { LeaderCalls } from "@stamp/metadata-store";
import { type GrpcTransport, NodeClock, NodeRandom } from "@stamp/ports-node";
import { FeatureLevels, Status } from "@stamp/wire";
import type { ClusterStatus } from "../status.ts";

const lookEveryMs = 2_000;
const askTimeoutMs = 1_500;
const recordTimeoutMs = 10_000;

/** Ends when the level of the stamp is that of this release, or with the signal. Failures are tried again: nothing else waits for this. */
export async function finalizeByItself(
  transport: Pick<GrpcTransport, "client">,
  status: () => Pick<ClusterStatus, "ready" | "processes" | "lockService">,
  signal: AbortSignal,
  everyMs: number = lookEveryMs,
): Promise<void> {
  while (!signal.aborted) {
    if (status().ready && (await allKnow(transport, status())) && (await record(transport, status().lockService))) return;
    // The signal ends the wait.
    await sleep(everyMs, undefined, { signal }).catch(() => {});
  }
}

async function allKnow(transport: Pick<GrpcTransport, "client">, { processes }: Pick<ClusterStatus, "processes">): Promise<boolean> {
  const asked = processes.map(({ grpc }) => transport.client(grpc, Status).getStatus({ withoutFacts: true }, { timeoutMs: askTimeoutMs }));
  const answers = await Promise.all(asked);
  return answers.every((answer) => answer.ok && (answer.value.versions?.featureLevel ?? 0) >= featureLevel);
}

async function record(transport: Pick<GrpcTransport, "client">, lockService: string): Promise<boolean> {
  const world = { clock: new NodeClock(), random: new NodeRandom(), transport: transport as GrpcTransport };
  const calls = new LeaderCalls(world, { lockService, leaseName: "stream-manager" });
  const set = await calls.call(
    recordTimeoutMs,
    (address, timeoutMs) => transport.client(address, FeatureLevels).setFeatureLevel({ level: featureLevel }, { timeoutMs }),
    { idempotent: true, mayLackMethod: true },
  );
  return set.ok;
}
