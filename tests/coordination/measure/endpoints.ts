/** Twelve callers share the front-ends of a cluster: one says no for a time, one is killed. Calls are small reads of a blob. */
import { setTimeout as delay } from "node:timers/promises";
import { BlobServiceClient } from "@azure/storage-blob";
import type { DrillTarget } from "@stamp/drills";
import { EndpointBalancer, GrpcAvailability } from "@stamp/endpoints";
import { AvailabilityControl } from "@stamp/wire";
import { container } from "./clock.ts";

/** Returns calls that failed at their caller. `phaseMs`: length of each phase. */
export async function endpoints(stamp: DrillTarget, phaseMs: number, callers = 12): Promise<number> {
  const fronts = (await stamp.status()).processes.filter(({ role }) => role === "front-end");
  const box = container("endpoints");
  await box.createIfNotExists();
  await box.getBlockBlobClient("read").upload("hello", 5);
  const asking = new GrpcAvailability();
  // A call that a front-end does not answer goes to the next one: the SDK's own attempts would stay with the dead one.
  const once = { retryOptions: { maxTries: 1, tryTimeoutInMs: 5_000 } };
  const reads = new Map(
    fronts.map(({ grpc }, at) => [
      grpc,
      BlobServiceClient.fromConnectionString(stamp.connectionStrings[at] ?? "", once)
        .getContainerClient("endpoints")
        .getBlobClient("read"),
    ]),
  );
  const served = new Map<string, number>();
  let [failed, again, stopped] = [0, 0, false];
  const caller = async (ordinal: number): Promise<void> => {
    const balancer = new EndpointBalancer({ nodes: [...reads.keys()], ordinal, cacheMs: 1_000, isAvailable: asking.ask });
    while (!stopped) {
      try {
        await balancer.call(
          async (address) => {
            await reads.get(address)?.downloadToBuffer();
            served.set(address, (served.get(address) ?? 0) + 1);
          },
          (error) => {
            const { statusCode } = error as { statusCode?: number };
            const nodes = statusCode === undefined || statusCode >= 500;
            if (nodes) again++;
            return nodes;
          },
        );
      } catch (error) {
        failed++;
        console.error(`a call failed: ${error}`);
      }
      await delay(20);
    }
  };
  console.log(
    `| phase | ${fronts.map(({ name }) => name).join(" | ")} | repeated at another | failed |\n|---|${fronts.map(() => "---|").join("")}---|---|`,
  );
  const phase = async (name: string, settleMs: number): Promise<void> => {
    await delay(settleMs);
    const failedBefore = failed;
    served.clear();
    await delay(phaseMs);
    const total = [...served.values()].reduce((sum, count) => sum + count, 0);
    const shares = fronts.map(({ grpc }) => `${served.get(grpc) ?? 0} (${(((served.get(grpc) ?? 0) / total) * 100).toFixed(0)}%)`);
    console.log(`| ${name} | ${shares.join(" | ")} | ${again} | ${failed - failedBefore} |`);
    again = 0;
  };
  const calling = Array.from({ length: callers }, (_, ordinal) => caller(ordinal));
  const [first, second] = fronts;
  if (first === undefined || second === undefined) throw new Error("two front-ends are needed");
  const control = stamp.transport.client(first.grpc, AvailabilityControl);
  const told = async (forMs: number): Promise<void> => {
    const answer = await control.disableNode({ forMs }, { timeoutMs: 10_000 });
    if (!answer.ok) throw new Error("the front-end did not take the no");
  };
  // Answers are kept for up to 1.2 s.
  await phase("all say yes", 1_500);
  await told(600_000);
  await phase(`${first.name} says no`, 1_500);
  await told(0);
  await phase("all say yes again", 1_500);
  process.kill(second.pid ?? 0, "SIGKILL");
  await phase(`${second.name} is killed at the start (its supervisor starts it again)`, 0);
  await phase("afterwards", 2_500);
  stopped = true;
  await Promise.all(calling);
  asking.close();
  return failed;
}

/** Prints the cost of a resolution whose answer is kept. */
export async function resolutions(count = 5_000_000): Promise<void> {
  const balancer = new EndpointBalancer({ nodes: ["a", "b", "c"], ordinal: 1, cacheMs: 3_600_000, isAvailable: async () => true });
  await balancer.resolve();
  const runs: number[] = [];
  for (let run = 0; run < 5; run++) {
    const fromNs = process.hrtime.bigint();
    for (let at = 0; at < count; at++) balancer.current();
    runs.push(Number(process.hrtime.bigint() - fromNs) / count);
  }
  console.log(`current() with a kept answer: ${runs.map((ns) => ns.toFixed(0)).join(", ")} ns in five runs of ${count}`);
  const fromNs = process.hrtime.bigint();
  for (let at = 0; at < count / 10; at++) await balancer.resolve();
  console.log(`resolve() with a kept answer: ${((Number(process.hrtime.bigint() - fromNs) * 10) / count).toFixed(0)} ns`);
}
