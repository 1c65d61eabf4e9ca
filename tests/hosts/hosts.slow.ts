/**
 * A stamp on three hosts (network namespaces) that lose one another, under clients of the real SDK. Skipped with a reason where there are no
 * namespaces; the half over etcd also where there is no etcd. For docs/measurements/figures.md:
 *
 *   STAMP_HOSTS_ALL=true         all faults
 *   STAMP_HOSTS_FAULTS=PATTERN   those whose name matches, e.g. "killed|hears"
 *   STAMP_HOSTS_TIMES=N          each one N times, in turns
 *   STAMP_HOSTS_LOGS=FOLDER      keeps the logs of all hosts
 */
import assert from "node:assert/strict";
import {
  allFaults,
  cutStreamManager,
  deafLockService,
  etcdFaults,
  killEtcdLeader,
  killLockService,
  measured,
  unheardLockService,
} from "./faults.ts";
import { hostsTest } from "./hosts-test.ts";
import { hosts } from "./stamp-hosts.ts";

const all = process.env.STAMP_HOSTS_ALL === "true";
const pattern = process.env.STAMP_HOSTS_FAULTS;
const times = Number(process.env.STAMP_HOSTS_TIMES ?? 1);
const long = all || pattern !== undefined;
const few = [killLockService, deafLockService, unheardLockService, cutStreamManager];
const settings = [
  { metadata: "replicated", few, possible: allFaults },
  { metadata: "etcd", few: [...few, killEtcdLeader], possible: [...allFaults, ...etcdFaults] },
] as const;

for (const { metadata, few, possible } of settings) {
  const faults = long ? possible.filter(({ name }) => new RegExp(pattern ?? "").test(name)) : few;
  await hostsTest(
    `three hosts, metadata ${metadata}: hosts are killed, cut off, deaf and unheard; histories are linearizable, and nothing is lost`,
    {
      timeoutMs: long ? 300_000 + faults.length * times * 80_000 : 500_000,
      etcd: metadata === "etcd",
      skip: faults.length > 0 ? undefined : `no fault matches ${pattern}`,
    },
    async (running) => {
      const started = await running.start({ metadata });
      // Every host tells of all of them, and every extent lies on three.
      for (const host of hosts) {
        const { processes, health } = await started.status(host);
        assert.deepEqual([processes.length, new Set(processes.map((each) => each.host)).size], [16, 3], health.sentence);
      }
      const shared = long ? Array.from({ length: 16 * times }, (_, i) => `shared-${i}`) : undefined;
      const working = await running.startClients(hosts, shared);
      const table = [];
      for (const fault of Array.from({ length: times }, () => faults).flat()) {
        const result = await measured(started, working, fault);
        console.log(JSON.stringify({ metadata, ...result }));
        table.push(result);
      }
      const wrong = await working.finish();
      console.log(JSON.stringify({ metadata, acknowledged: working.acknowledged, ...working.counts }));
      assert.deepEqual(wrong, []);
      // etcd drops the connection of a client that pings too often: its calls would fail now and then.
      assert.deepEqual(started.linesWith("excess pings"), []);
      assert.ok(working.acknowledged > 100, "too few writes to judge by");
      for (const { fault, ms, aimMs } of table)
        if (aimMs !== undefined) console.log(`${ms <= aimMs ? "within" : "ABOVE"} ${aimMs} ms: ${fault}: ${ms}`);
    },
  );
}
