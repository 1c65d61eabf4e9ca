/** The stream manager has extents coded, fragments repaired and moved, and what is left deleted; under crashes of managers and nodes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, type RuleName, unwrap } from "@stamp/base";
import { fragmentBytesOf, fragmentContentOffset } from "@stamp/extent";
import { checkDisk } from "@stamp/extent-node";
import { ExtentState, NodeDuty } from "@stamp/wire";
import { Cluster } from "../testing/cluster.ts";
import {
  clusterOf,
  code,
  config,
  contentOf,
  filesOf,
  infoOf,
  isCoded,
  names,
  type Sealed,
  sealed,
  timeoutMs,
} from "../testing/coding-harness.ts";

test("coding: an extent becomes fragments; its replicas go after the grace, and nothing else is left", async () => {
  const cluster = clusterOf(51);
  await cluster.sim.run(async () => {
    const extent = await sealed(cluster);
    const begun = unwrap(await code(cluster, extent.id));
    assert.equal(begun.attempt, "code");
    assert.equal(begun.intactCopies, 3, "it is replicated until all is verified");
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const info = await infoOf(cluster, extent.id);
    assert.equal(new Set(info?.fragmentNodeIds).size, 6);
    assert.equal(filesOf(cluster).filter((file) => file.endsWith(".extent")).length, 3, "kept for the grace");
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    await cluster.until("the replicas are gone", async () => !filesOf(cluster).some((file) => file.endsWith(".extent")), 30_000);
    assert.equal(filesOf(cluster).length, 6);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    const again = await code(cluster, extent.id);
    assert.ok(!again.ok && again.failure.reason === "conflict");
  });
});

test("coding: what can't be coded is refused with the reason", async () => {
  const cluster = new Cluster({ seed: 52, nodes: names.slice(0, 5), config });
  await cluster.sim.run(async () => {
    const extent = await sealed(cluster);
    const few = await code(cluster, extent.id);
    assert.ok(!few.ok && few.failure.reason === "noPlacement" && /needs 6 nodes/.test(few.failure.message), JSON.stringify(few));
    const unknown = await code(cluster, extent.id, "rs-1-1");
    assert.ok(!unknown.ok && unknown.failure.reason === "badRequest");
  });
});

test("coding: the fragment of a lost disk is made anew elsewhere; that of a node that comes back with it is kept", async () => {
  const cluster = clusterOf(53);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const info = await infoOf(cluster, extent.id);
    const before = info?.fragmentNodeIds ?? [];
    const version = info?.coded?.fragments[0]?.version;
    const [lost, back] = before as [string, string];
    sim.crash(back, { stayDown: true, unsynced: "lost" });
    sim.crash(lost, { stayDown: true });
    sim.disk(lost).wipe();
    sim.keyValue(lost).wipe();
    sim.restart(lost);
    await sim.sleep(1_000);
    sim.restart(back);
    await cluster.until("made anew", async () => (await infoOf(cluster, extent.id))?.coded?.fragments[0]?.version !== version, 60_000);
    await cluster.until("idle", async () => (await infoOf(cluster, extent.id))?.attempt === "", 30_000);
    const after = await infoOf(cluster, extent.id);
    assert.deepEqual(after?.fragmentNodeIds.slice(1), before.slice(1), "the others stay where they are");
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});

test("coding: a fragment that rots is found by the scrub of its node, told, and made anew; the old file is deleted", async () => {
  const cluster = clusterOf(54);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const info = await infoOf(cluster, extent.id);
    const name = info?.fragmentNodeIds[2] ?? "";
    const [path] = sim
      .disk(name)
      .paths()
      .filter((each) => each.endsWith(".fragment")) as [string];
    sim.disk(name).corrupt(path, fragmentContentOffset(fragmentBytesOf(extent.content.length, 4)) + 9);
    const version = info?.coded?.fragments[2]?.version;
    const isNew = async (): Promise<boolean> => (await infoOf(cluster, extent.id))?.coded?.fragments[2]?.version !== version;
    await cluster.until("made anew", isNew, 300_000);
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
    await cluster.until("no other file", async () => filesOf(cluster).filter((file) => file.endsWith(".fragment")).length === 6, 30_000);
  });
});

test("coding, rule fragmentsVerified: fragments that rot before the commit keep the replicas; without it the extent is lost", async () => {
  for (const off of [[], ["fragmentsVerified"]] as RuleName[][]) {
    const cluster = clusterOf(55, ["sm1"], off);
    const { sim } = cluster;
    await sim.run(async () => {
      const extent = await sealed(cluster);
      const begun = code(cluster, extent.id);
      const rotten = new Set<string>();
      let info = await infoOf(cluster, extent.id);
      // Three of six, as soon as they are there: more than the code bears.
      for (let i = 0; i < 20_000 && rotten.size < 3; i++) {
        for (const name of names) {
          const path = sim
            .disk(name)
            .paths()
            .find((each) => each.endsWith(".fragment"));
          if (path === undefined || rotten.size === 3 || rotten.has(name)) continue;
          rotten.add(name);
          sim.disk(name).corrupt(path, fragmentContentOffset(fragmentBytesOf(extent.content.length, 4)) + 5);
        }
        await sim.sleep(0.2);
      }
      unwrap(await begun);
      await cluster.until("over", async () => {
        info = await infoOf(cluster, extent.id);
        return info?.attempt === "";
      });
      assert.equal(rotten.size, 3);
      assert.equal(info?.coded === undefined, off.length === 0);
      if (off.length > 0) return;
      assert.equal(info?.intactCopies, 3);
      await cluster.until("the fragments are deleted", async () => !filesOf(cluster).some((file) => file.endsWith(".fragment")), 30_000);
      unwrap(await code(cluster, extent.id));
      await cluster.until("coded", () => isCoded(cluster, extent.id));
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
    });
  }
});

test("coding: an extent that is dropped takes its fragments along, also in the middle of an attempt", async () => {
  for (const [seed, delayMs] of [
    [56, 0],
    [57, 5],
    [58, 3_000],
  ] as const) {
    const cluster = clusterOf(seed);
    await cluster.sim.run(async () => {
      const extent = await sealed(cluster);
      unwrap(await code(cluster, extent.id));
      await cluster.sim.sleep(delayMs);
      unwrap(await cluster.sm((sm, left) => sm.deleteStream({ name: "/s", ownerEpoch: 2n }, { timeoutMs: left })));
      await cluster.until("forgotten", async () => (await infoOf(cluster, extent.id)) === undefined, 60_000);
      await cluster.sim.sleep(2_000);
      assert.deepEqual(filesOf(cluster), []);
    });
  }
});

test("coding: a draining node's fragments are made elsewhere, then it may be decommissioned", async () => {
  const cluster = clusterOf(59);
  await cluster.sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const nodeId = (await infoOf(cluster, extent.id))?.fragmentNodeIds[3] ?? "";
    const setDuty = (duty: NodeDuty) => cluster.sm((sm, left) => sm.setNodeDuty({ nodeId, duty }, { timeoutMs: left }));
    unwrap(await setDuty(NodeDuty.DRAINING));
    const early = await setDuty(NodeDuty.DECOMMISSIONED);
    assert.ok(!early.ok && early.failure.reason === "conflict", "it holds a fragment");
    await cluster.until(
      "empty",
      async () => {
        const { nodes } = unwrap(await cluster.sm((sm, left) => sm.listNodes({}, { timeoutMs: left })));
        return nodes.find((node) => node.nodeId === nodeId)?.replicas === 0n;
      },
      60_000,
    );
    unwrap(await setDuty(NodeDuty.DECOMMISSIONED));
    assert.ok(!(await infoOf(cluster, extent.id))?.fragmentNodeIds.includes(nodeId));
    assert.deepEqual(await contentOf(cluster, extent), extent.content);
  });
});

test("coding: whichever manager or node dies in whichever step, the extent is whole as its record says, and ends coded", async () => {
  let codings = 0;
  for (let seed = 70; seed < 84; seed++) {
    const cluster = clusterOf(seed, ["sm1", "sm2"]);
    const { sim } = cluster;
    await sim.run(async () => {
      const extent = await sealed(cluster);
      const { prng } = sim;
      for (let round = 0; round < 3; round++) {
        void code(cluster, extent.id);
        await sim.sleep(prng.below(round === 0 ? 60 : 1_500));
        const victim = prng.chance(0.5) ? (prng.chance(0.5) ? "sm1" : "sm2") : (names[prng.below(names.length)] as string);
        if (prng.chance(0.3)) {
          sim.pause(victim);
          await sim.sleep(prng.below(9_000));
          sim.resume(victim);
        } else {
          sim.crash(victim);
          await sim.sleep(prng.below(3_000));
          sim.restart(victim);
        }
      }
      await cluster.until(
        "a manager leads and nothing is under way",
        async () => {
          const info = await infoOf(cluster, extent.id);
          const whole = info?.coded === undefined ? info?.intactCopies === 3 : info.coded.fragments.length === 6;
          return info?.state === ExtentState.SEALED && info.attempt === "" && whole;
        },
        120_000,
      );
      if ((await infoOf(cluster, extent.id))?.coded === undefined) {
        // An earlier call may still have come, or come now.
        await cluster.until(
          "coded",
          async () => {
            await code(cluster, extent.id);
            return isCoded(cluster, extent.id);
          },
          60_000,
        );
      } else codings += 1;
      assert.deepEqual(await contentOf(cluster, extent), extent.content, `seed ${seed}`);
      await cluster.until(
        "nothing else is left",
        async () => filesOf(cluster).filter((file) => !file.endsWith(".making")).length === 6,
        60_000,
      );
      assert.deepEqual(await contentOf(cluster, extent), extent.content, `seed ${seed}`);
    });
  }
  assert.ok(codings > 2, `${codings} codings survived what happened`);
});

test("coding: a coded extent becomes replicas again, also with as many nodes dead as the code bears; its fragments go after the grace", async () => {
  for (const late of [false, true]) {
    const cluster = clusterOf(60);
    const { sim } = cluster;
    await sim.run(async () => {
      const extent = await sealed(cluster);
      const replicate = () => cluster.sm((sm, left) => sm.replicateExtent({ extentId: extent.id }, { timeoutMs: left }));
      const early = await replicate();
      assert.ok(!early.ok && early.failure.reason === "conflict", "it is replicated");
      unwrap(await code(cluster, extent.id));
      await cluster.until("coded", () => isCoded(cluster, extent.id));
      const holders = (await infoOf(cluster, extent.id))?.fragmentNodeIds ?? [];
      if (late) {
        // Nothing but the fragments is left, and two of them are away for less than the grace of repair.
        await cluster.until("the replicas are gone", async () => !filesOf(cluster).some((file) => file.endsWith(".extent")), 30_000);
        for (const name of [holders[0], holders[4]] as string[]) sim.crash(name, { stayDown: true });
        await sim.sleep(3_200);
      }
      unwrap(await replicate());
      const isWhole = async (): Promise<boolean> => {
        const info = await infoOf(cluster, extent.id);
        return info?.coded === undefined && info?.attempt === "" && info.intactCopies === 3;
      };
      await cluster.until("replicated", isWhole, 60_000);
      for (const address of (await infoOf(cluster, extent.id))?.location?.addresses ?? []) {
        const parts: Uint8Array[] = [];
        for (let at = 0; at < extent.content.length; at += parts.at(-1)?.length ?? 0) {
          const request = { extentId: extent.id, offsetBytes: BigInt(at), lengthBytes: 1 << 20 };
          parts.push(unwrap(await cluster.en(address).readRaw(request, { timeoutMs })).payload);
        }
        assert.deepEqual(concatBytes(parts), extent.content, address);
      }
      if (late) for (const name of [holders[0], holders[4]] as string[]) sim.restart(name);
      await cluster.until(
        "only replicas are left",
        async () =>
          filesOf(cluster).join() ===
          filesOf(cluster)
            .filter((file) => file.endsWith(".extent"))
            .join(),
        60_000,
      );
      assert.equal(filesOf(cluster).length, 3);
      unwrap(await code(cluster, extent.id));
      await cluster.until("coded again", () => isCoded(cluster, extent.id));
      assert.deepEqual(await contentOf(cluster, extent), extent.content);
    });
  }
});

test("coding: the disk of a stopped node tells its fragments, their damage, and strays, and nothing on it is changed", async () => {
  const cluster = clusterOf(61);
  const { sim } = cluster;
  await sim.run(async () => {
    const extent = await sealed(cluster);
    unwrap(await code(cluster, extent.id));
    await cluster.until("coded", () => isCoded(cluster, extent.id));
    const info = await infoOf(cluster, extent.id);
    const nodeId = info?.fragmentNodeIds[1] ?? "";
    sim.crash(nodeId, { stayDown: true });
    const check = (deep: boolean) => checkDisk({ world: sim.offline(nodeId), nodeId }, deep);
    const whole = await check(true);
    const version = Number(info?.coded?.fragments[1]?.version);
    assert.deepEqual(whole.fragments, [{ extentId: Number(extent.id), version, index: 1, damage: "" }]);
    assert.deepEqual(whole.problems, []);
    const disk = sim.disk(nodeId);
    const path = disk.paths().find((each) => each.endsWith(".fragment")) ?? "";
    const files = sim.offline(nodeId).disk;
    for (const name of ["x.txt", "0-0-0.making"]) {
      const file = await files.open(path.replace(/[^/]*$/, name), { create: true });
      await file.write(0, [new Uint8Array(3)]);
      await file.sync();
      await file.close();
    }
    disk.corrupt(path, fragmentContentOffset(fragmentBytesOf(extent.content.length, 4)) + 9);
    const before = disk.paths();
    assert.equal((await check(false)).fragments[0]?.damage, "", "no content is read");
    const deep = await check(true);
    assert.match(deep.fragments[0]?.damage ?? "", /chunk 0/);
    assert.deepEqual(
      deep.problems.map(({ kind, what }) => `${kind}: ${what.replace(/.*\//, "")}`),
      ["strayFile: x.txt is no fragment's"],
    );
    disk.corrupt(path, 20);
    assert.notEqual((await check(false)).fragments[0]?.damage, "", "the head is read");
    assert.deepEqual(disk.paths(), before);
  });
});

test("coding: no more than eight extents at once for each of codingsMax are coded when people ask for it", async () => {
  const cluster = clusterOf(611, ["sm1"], [], { codingsMax: 1 });
  await cluster.sim.run(async () => {
    const extents: Sealed[] = [];
    for (let i = 0; i < 9; i++) extents.push(await sealed(cluster, `/s${i}`));
    for (const name of names) cluster.sim.disk(name).slowFactor = 500;
    const last = extents.pop() as Sealed;
    for (const { id } of extents) unwrap(await code(cluster, id));
    const refused = await code(cluster, last.id);
    assert.ok(!refused.ok && refused.failure.reason === "overloaded", "the ninth");
    for (const name of names) cluster.sim.disk(name).slowFactor = 1;
    await cluster.until("coded", () => isCoded(cluster, extents[0]?.id ?? 0n), 120_000);
    await cluster.until("taken", async () => (await code(cluster, last.id)).ok, 120_000);
  });
});
