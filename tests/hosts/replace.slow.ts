/**
 * A dead host is replaced by another one with the commands of docs/guides/deploy.md, while clients of the SDK work. The hosts have TLS between their
 * processes, and a master key. Skipped with a reason where there are no network namespaces or no etcd.
 */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { ExtentState } from "@stamp/wire";
import { hostsTest } from "./hosts-test.ts";
import type { Host } from "./stamp-hosts.ts";

interface HostLine {
  readonly host: string;
  readonly processes: number;
  readonly notReady: readonly string[];
  readonly replicas: number;
  readonly duty: string;
}

await hostsTest(
  "a host dies for ever: another one takes its place, every extent lies on three hosts again, and nothing is lost",
  { timeoutMs: 400_000 },
  async (running) => {
    const started = await running.start({ secured: true });
    const working = await running.startClients(["a", "b"]);
    await sleep(5_000);
    await started.kill("c");
    const list = async (): Promise<HostLine[]> => JSON.parse(await started.stamp("a", ["host", "list", "--json"])) as HostLine[];
    const dead = (await list()).find(({ host }) => host === "c");
    assert.deepEqual([dead?.processes, dead?.notReady.length, dead?.duty], [4, 4, "serving"]);
    assert.ok((dead?.replicas ?? 0) > 0);
    await assert.rejects(
      started.stamp("a", ["host", "remove", "c"]),
      /2 extent nodes would take replicas, and copies is 3.*Add a host first/s,
    );
    await assert.rejects(started.stamp("a", ["host", "remove", "a"]), /run it on another host/);
    await started.addHost("d");
    const left = "extent-node-1,extent-node-2,extent-node-4";
    const said = await started.stamp("a", ["host", "remove", "c"]);
    assert.match(said, /c is removed: extent-node-3 will never be used again/);
    const duties = async () => (await list()).map(({ host, notReady, duty }) => [host, notReady.length, duty]);
    const allServe = ["a", "b", "d"].map((host) => [host, 0, "serving"]);
    // On a busy machine a process is now and then late with its answer.
    for (let tries = 0; tries < 60 && !isDeepStrictEqual(await duties(), allServe); tries++) await sleep(1_000);
    assert.deepEqual(await duties(), allServe);
    // What nothing refers to any more is about to be deleted, and not copied.
    const referred = async (host: Host) => (await started.status(host)).extents.filter(({ references }) => references > 0);
    assert.deepEqual(
      (await referred("a")).filter(({ nodeIds }) => nodeIds.includes("extent-node-3")),
      [],
    );
    // An extent that was made before the new host had reported gets its third replica there, once it is sealed.
    const elsewhere = async () =>
      (await referred("a")).filter(({ state, nodeIds }) => state === ExtentState.SEALED && String(nodeIds.toSorted()) !== left);
    let notThere = await elsewhere();
    for (let tries = 0; tries < 240 && notThere.length > 0; tries++) {
      await sleep(500);
      notThere = await elsewhere();
    }
    assert.deepEqual(notThere, []);
    for (const host of ["b", "d"] as const)
      assert.deepEqual([...new Set((await started.status(host)).processes.map((each) => each.host))].sort(), ["a", "b", "d"]);
    // Somebody without a certificate gets no answer from a process, and the accounts' key lies on no disk as it is.
    assert.equal(await started.answersPlainly("a", 11_300), false);
    assert.deepEqual(started.filesWithKey(), []);
    // Before long work on a host its replicas are made again elsewhere, and it is used again afterwards. That needs a fourth host.
    await assert.rejects(started.stamp("a", ["host", "drain", "b", "--wait"]), /2 extent nodes would take replicas, and copies is 3/);
    await started.addHost("e");
    assert.match(await started.stamp("a", ["host", "drain", "b", "--wait"]), /the extent nodes of b hold nothing: it can be stopped/);
    const b = async () => (await list()).find(({ host }) => host === "b");
    assert.deepEqual([(await b())?.replicas, (await b())?.duty], [0, "draining"]);
    assert.match(await started.stamp("a", ["host", "undrain", "b"]), /the extent nodes of b take replicas again: extent-node-2/);
    assert.equal((await b())?.duty, "serving");
    await assert.rejects(started.stamp("c", ["up", "-d", "--host", "c"]), /c is no host of .*its hosts: a, b, d, e/);
    assert.deepEqual(await working.finish(), []);
    assert.ok(working.acknowledged > 100);
  },
);
