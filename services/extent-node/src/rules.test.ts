/** Each safety rule at the node, switched off: what it prevents then happens. So the simulator's mutation gate has something to find. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import { ReplicaState } from "@stamp/wire";
import { Cluster, names, pattern, reasonOf } from "./testing/harness.ts";

const timeoutMs = 5_000;
type Observe = (cluster: Cluster) => Promise<unknown>;

async function restart(cluster: Cluster, name: string): Promise<void> {
  cluster.sim.crash(name, { unsynced: "lost" });
  cluster.sim.restart(name);
  await cluster.ready(name);
}

/** The observation with the rule on, and off. */
const rules: readonly { readonly rule: RuleName; readonly on: unknown; readonly off: unknown; readonly observe: Observe }[] = [
  {
    rule: "ackNeedsAllReplicas",
    on: "extentFailed",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create();
      cluster.sim.partition(["en-1"], ["en-3"]);
      return reasonOf(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
    },
  },
  {
    rule: "ackOnlyDurable",
    on: "extentFailed",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create();
      for (const name of ["en-2", "en-3"]) cluster.sim.disk(name).failNext("sync", "syncFailed", "journal");
      return reasonOf(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
    },
  },
  {
    rule: "contiguousOffsets",
    on: "offsetGap",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create();
      const other = await cluster.create();
      unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
      unwrap(await cluster.append("en-1", other, 0, [pattern(10, 1)]));
      const second = await cluster.append("en-1", id, 30, [pattern(10, 2)]);
      assert.equal(second.ok, true);
      // The same record once more: it does not begin at the replica's end.
      const raw = unwrap(await cluster.fence("en-1", id));
      assert.equal(raw.durableBytes, 60n);
      const { payload } = unwrap(
        await cluster.node("en-1").readRaw({ extentId: BigInt(id), offsetBytes: 30n, lengthBytes: 30 }, { timeoutMs }),
      );
      const again = {
        extentId: BigInt(id),
        ownerEpoch: 1n,
        offsetBytes: 30n,
        checksum: cluster.tester.digest.crc32c(payload),
        primaryIncarnation: 1n,
        payload: [payload],
      };
      return reasonOf(await cluster.node("en-2").replicate(again, { timeoutMs }));
    },
  },
  {
    rule: "primaryStopsAtFailure",
    on: ["extentFailed", "extentFailed"],
    off: ["extentFailed", "ok"],
    observe: async (cluster) => {
      const id = await cluster.create(["en-1"]);
      const short = cluster.append("en-1", id, 0, [pattern(10, 1)], 1, 5_000);
      cluster.sim.disk("en-1").slowFactor = 4_000;
      await cluster.sim.sleep(1_000);
      cluster.sim.disk("en-1").slowFactor = 1;
      await cluster.sim.sleep(9_000);
      return [reasonOf(await short), reasonOf(await cluster.append("en-1", id, 30, [pattern(10, 2)]))];
    },
  },
  {
    rule: "clientExpectsOffset",
    on: "offsetGap",
    off: "ok",
    observe: async (cluster) => reasonOf(await cluster.append("en-1", await cluster.create(), 500, [pattern(10, 1)])),
  },
  {
    rule: "ownerEpochAtNode",
    on: "staleOwnerEpoch",
    off: "ok",
    observe: async (cluster) => reasonOf(await cluster.append("en-1", await cluster.create(names, 5), 0, [pattern(10, 1)], 4)),
  },
  {
    rule: "fenceBeforeLength",
    on: "extentFenced",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create();
      unwrap(await cluster.fence("en-1", id));
      return reasonOf(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
    },
  },
  {
    rule: "fenceDrains",
    on: true,
    off: false,
    observe: async (cluster) => {
      const id = await cluster.create(["en-1"]);
      cluster.sim.disk("en-1").slowFactor = 200;
      const appended = cluster.append("en-1", id, 0, [pattern(1_000, 1)]);
      await cluster.sim.sleep(20);
      const fenced = unwrap(await cluster.fence("en-1", id)).durableBytes;
      assert.equal((await appended).ok, true);
      return fenced > 0n;
    },
  },
  {
    rule: "fenceDurable",
    on: true,
    off: false,
    observe: async (cluster) => {
      const id = await cluster.create();
      unwrap(await cluster.fence("en-1", id));
      await restart(cluster, "en-1");
      return (await cluster.replica("en-1", id)).fenced;
    },
  },
  {
    rule: "neverReopen",
    on: "extentStale",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create(["en-1"]);
      unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
      await restart(cluster, "en-1");
      return reasonOf(await cluster.append("en-1", id, 30, [pattern(10, 2)]));
    },
  },
  {
    rule: "trimBeforeServing",
    on: "extentStale",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create();
      unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
      await restart(cluster, "en-2");
      return reasonOf(await cluster.read("en-2", id, 20n, 10));
    },
  },
  {
    rule: "smTermAtNode",
    on: "staleTerm",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create();
      unwrap(await cluster.fence("en-1", id, 9));
      return reasonOf(await cluster.fence("en-1", id, 8));
    },
  },
  {
    rule: "givenTermsOnly",
    on: ["badRequest", "ok"],
    off: ["ok", "staleTerm"],
    observe: async (cluster) => {
      const id = await cluster.create();
      const farAhead = reasonOf(await cluster.fence("en-1", id, Number.MAX_SAFE_INTEGER));
      return [farAhead, reasonOf(await cluster.fence("en-1", id, 2))];
    },
  },
  {
    rule: "diskIdentity",
    on: "wrongDisk",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create();
      return reasonOf(await cluster.node("en-1").fenceExtent({ smTerm: 1n, extentId: BigInt(id), diskId: "old" }, { timeoutMs }));
    },
  },
  {
    rule: "checksumBeforeServing",
    on: "damaged",
    off: "ok",
    observe: async (cluster) => {
      const id = await cluster.create(["en-1"]);
      unwrap(await cluster.append("en-1", id, 0, [pattern(1_000, 1)]));
      unwrap(await cluster.seal("en-1", id, 1_020));
      await cluster.sim.sleep(500);
      const path =
        cluster.sim
          .disk("en-1")
          .paths()
          .find((each) => each.endsWith(".extent")) ?? "";
      cluster.sim.disk("en-1").corrupt(path, 8192 + 100);
      return reasonOf(await cluster.read("en-1", id, 20n, 1_000));
    },
  },
  {
    rule: "pointedBytesSynced",
    on: ReplicaState.CLOSED,
    off: ReplicaState.DAMAGED,
    observe: async (cluster) => {
      const id = await cluster.create(["en-1"]);
      unwrap(await cluster.append("en-1", id, 0, [pattern(300_000, 1)]));
      await restart(cluster, "en-1");
      return (await cluster.replica("en-1", id)).state;
    },
  },
  {
    rule: "tableNotBehind",
    on: [ReplicaState.SEALED, true],
    off: [ReplicaState.CLOSED, false],
    observe: async (cluster) => {
      const id = await cluster.create(["en-1"]);
      const { endBytes } = unwrap(await cluster.append("en-1", id, 0, [pattern(1_000, 1)]));
      const other = await cluster.create(["en-1"]);
      // The synced table knows the extent as open; what comes next is in it, too, and in no journal.
      const fill = async (from: number, count: number): Promise<number> => {
        let end = from;
        for (let i = 0; i < count; i++) end = Number(unwrap(await cluster.append("en-1", other, end, [pattern(60_000, i)])).endBytes);
        await cluster.sim.sleep(1_000);
        return end;
      };
      const end = await fill(0, 40);
      unwrap(await cluster.seal("en-1", id, Number(endBytes)));
      await fill(end, 40);
      await cluster.sim.stop("en-1");
      cluster.sim.keyValue("en-1").forgetEnd("extents", 14);
      cluster.sim.restart("en-1");
      await cluster.ready("en-1");
      return [(await cluster.replica("en-1", id)).state, cluster.facts("en-1").tableRebuilt];
    },
  },
  {
    // Sealed at 0 under version 2, given up, and about to be sealed again under version 4.
    rule: "newerSealOnly",
    on: ["extentStale", 30n],
    off: ["ok", 0n],
    observe: async (cluster) => {
      const id = await cluster.create();
      unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
      unwrap(await cluster.fence("en-2", id, 1, 3));
      const late = reasonOf(await cluster.seal("en-2", id, 0));
      return [late, unwrap(await cluster.fence("en-2", id, 1, 3)).durableBytes];
    },
  },
  {
    // Version 2, which the deletion was for, was replaced by version 5 before the deletion arrived.
    rule: "deletionsNameVersions",
    on: ["conflict", "ok"],
    off: ["ok", "unknownExtent"],
    observe: async (cluster) => {
      const id = await cluster.create();
      unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
      const diskId = String(cluster.facts("en-2").diskId);
      const seal = { smTerm: 1n, extentId: BigInt(id), sealedLengthBytes: 30n, version: 5n, diskId };
      unwrap(await cluster.node("en-2").sealExtent(seal, { timeoutMs }));
      const late = await cluster.node("en-2").deleteExtent({ smTerm: 1n, extentId: BigInt(id), version: 2n }, { timeoutMs });
      return [reasonOf(late), reasonOf(await cluster.read("en-2", id, 20n, 10))];
    },
  },
];

for (const { rule, on, off, observe } of rules) {
  test(`rule ${rule}: prevents what happens without it`, async () => {
    for (const [switched, expected] of [
      [[], on],
      [[rule], off],
    ] as const) {
      const cluster = new Cluster(40, { off: switched });
      let seen: unknown;
      await cluster.run(async () => {
        await cluster.allReady();
        seen = await observe(cluster);
      });
      assert.deepEqual(seen, expected, switched.length === 0 ? "rule on" : "rule off");
    }
  });
}
