/**
 * A stamp on three hosts (network namespaces) that lose one another, under clients of the real SDK. Skipped with a reason where there are no
 * namespaces or no etcd. All faults, with a table for docs/measurements/hosts.md: STAMP_HOSTS_ALL=true node --test tests/hosts/hosts.slow.ts
 */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { historiesDrill, type MovingClients } from "@stamp/drills";
import { findEtcd } from "../etcd/etcd-server.ts";
import { allFaults, cutStreamManager, killEtcdLeader, killLockService, measured } from "./faults.ts";
import { whyNoNamespaces } from "./network.ts";
import { hosts, StampHosts } from "./stamp-hosts.ts";

const found = await findEtcd();
const none = await whyNoNamespaces();
const skip = none ?? ("skip" in found ? found.skip : undefined);
const all = process.env.STAMP_HOSTS_ALL === "true";
const options = skip === undefined ? { timeout: all ? 1_200_000 : 500_000 } : { skip };
let stamp: StampHosts | undefined;
let clients: MovingClients | undefined;
after(async () => {
  await clients?.stop();
  await stamp?.close();
});
// Whoever ends the test leaves no namespaces, and nothing that runs in them.
process.once("SIGTERM", () => void stamp?.close().finally(() => process.exit(1)));

test(
  "three hosts: one is killed, one is cut off, etcd's leader dies; histories are linearizable, and nothing is lost",
  options,
  async () => {
    const started = await StampHosts.start((found as { readonly program: string }).program);
    stamp = started;
    // Every host tells of all of them, and every extent lies on three.
    for (const host of hosts) {
      const { processes, health } = await started.status(host);
      assert.deepEqual([processes.length, new Set(processes.map((each) => each.host)).size], [16, 3], health.sentence);
    }
    const drill = await historiesDrill();
    const shared = all ? Array.from({ length: 16 }, (_, i) => `shared-${i}`) : undefined;
    const working = await drill.MovingClients.start(
      hosts.map((host) => started.connectionString(host)),
      shared,
    );
    clients = working;
    const faults = all ? allFaults : [killLockService, cutStreamManager, killEtcdLeader];
    const table = [];
    for (const fault of faults) {
      const result = await measured(started, working, fault);
      console.log(JSON.stringify(result));
      table.push(result);
    }
    const wrong = await working.finish();
    console.log(JSON.stringify({ acknowledged: working.acknowledged, ...working.counts }));
    assert.deepEqual(wrong, []);
    // etcd drops the connection of a client that pings too often: its calls would fail now and then.
    assert.deepEqual(started.linesWith("excess pings"), []);
    assert.ok(working.acknowledged > 100, "too few writes to judge by");
    for (const { fault, ms, aimMs } of table)
      if (aimMs !== undefined) console.log(`${ms <= aimMs ? "within" : "ABOVE"} ${aimMs} ms: ${fault}: ${ms}`);
  },
);
