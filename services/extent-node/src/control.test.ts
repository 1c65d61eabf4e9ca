import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { Cluster, names, pattern, reasonOf } from "./testing/harness.ts";

const timeoutMs = 5_000;

test("fence: drains what was accepted, refuses every later append, and survives a restart", async () => {
  for (let seed = 20; seed < 30; seed++) {
    const cluster = new Cluster(seed);
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      let end = 0;
      const acknowledged: number[] = [];
      const calls: Promise<void>[] = [];
      for (let i = 0; i < 20; i++) {
        const expected = end;
        end += 1_020;
        calls.push(
          cluster.append("en-1", id, expected, [pattern(1_000, i)]).then((outcome) => {
            if (outcome.ok) acknowledged.push(Number(outcome.value.endBytes));
          }),
        );
      }
      await cluster.sim.sleep(cluster.sim.prng.below(4));
      const fence = unwrap(await cluster.fence("en-2", id));
      assert.equal(reasonOf(await cluster.append("en-1", id, end, [pattern(1, 1)])) === "ok", false);
      await Promise.all(calls);
      const last = Math.max(0, ...acknowledged);
      assert.ok(Number(fence.durableBytes) >= last, `acknowledged ${last}, fenced at ${fence.durableBytes}`);
      assert.equal((await cluster.replica("en-2", id)).durableBytes, fence.durableBytes);
      cluster.sim.crash("en-2", { unsynced: "lost" });
      cluster.sim.restart("en-2");
      await cluster.ready("en-2");
      const after = await cluster.replica("en-2", id);
      assert.equal(after.fenced, true);
      assert.equal(after.durableBytes, fence.durableBytes);
    });
  }
});

test("term: a raised one is durable before the answer, a lower one is refused by every command", async () => {
  const cluster = new Cluster(31);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    assert.equal(reasonOf(await cluster.fence("en-2", 777, 6)), "unknownExtent");
    cluster.sim.crash("en-2", { unsynced: "lost" });
    cluster.sim.restart("en-2");
    await cluster.ready("en-2");
    const node = cluster.node("en-2");
    const diskId = String(cluster.facts("en-2").diskId);
    assert.equal(reasonOf(await cluster.fence("en-2", id, 5)), "staleTerm");
    const stale = { smTerm: 5n, extentId: BigInt(id) };
    assert.equal(reasonOf(await node.sealExtent({ ...stale, diskId, version: 2n }, { timeoutMs })), "staleTerm");
    assert.equal(reasonOf(await node.deleteExtent({ ...stale, version: 2n }, { timeoutMs })), "staleTerm");
    const replicas = await cluster.replicas();
    const create = { ...stale, extentId: 60n, ownerEpoch: 1n, version: 1n, replicas, stampId: String(cluster.facts("en-1").stampId) };
    assert.equal(reasonOf(await node.createExtent(create, { timeoutMs })), "staleTerm");
    assert.equal(reasonOf(await cluster.fence("en-2", id, 6)), "ok");
  });
});

test("term: one far ahead is refused by every command unless the lock service gave it, and changes nothing", async () => {
  const cluster = new Cluster(36);
  const { sim } = cluster;
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const node = cluster.node("en-2");
    const diskId = String(cluster.facts("en-2").diskId);
    const replicas = await cluster.replicas();
    const commands = (smTerm: bigint) => {
      const sealed = { smTerm, extentId: BigInt(id), sealedLengthBytes: 0n, version: 2n, diskId };
      const made = { smTerm, extentId: 70n, ownerEpoch: 1n, version: 1n, stampId: String(cluster.facts("en-2").stampId) };
      return {
        getNodeReport: () => node.getNodeReport({ smTerm }, { timeoutMs }),
        fenceExtent: () => node.fenceExtent({ smTerm, extentId: BigInt(id), diskId, version: 1n }, { timeoutMs }),
        createExtent: () => node.createExtent({ ...made, replicas }, { timeoutMs }),
        copyExtent: () => node.copyExtent({ ...made, ...sealed, sources: ["en-1"] }, { timeoutMs }),
        sealExtent: () => node.sealExtent(sealed, { timeoutMs }),
        deleteExtent: () => node.deleteExtent({ smTerm, extentId: BigInt(id), version: 9n }, { timeoutMs }),
      };
    };
    for (const term of [BigInt(Number.MAX_SAFE_INTEGER), 100n]) {
      for (const [name, command] of Object.entries(commands(term))) assert.equal(reasonOf(await command()), "badRequest", name);
    }
    assert.equal(cluster.facts("en-2").smTerm, 1);
    assert.equal((await cluster.replica("en-2", id)).fenced, false);

    // Terms that follow closely are obeyed without a question, also when the lock service is out of reach.
    const asked = cluster.leaseQuestions;
    sim.partition(["en-2"], ["lock"]);
    assert.equal(reasonOf(await node.getNodeReport({ smTerm: 12n }, { timeoutMs })), "ok");
    assert.equal(cluster.leaseQuestions, asked);
    // They do not add up: the bound counts from the last term that the lock service vouched for.
    assert.equal(reasonOf(await node.getNodeReport({ smTerm: 24n }, { timeoutMs })), "notReady");
    sim.heal();
    cluster.smTerm = 1_000_024;
    await sim.until(async () => reasonOf(await node.getNodeReport({ smTerm: 1_000_024n }, { timeoutMs })) === "ok", 20_000, "it obeys");
    sim.crash("en-2", { unsynced: "lost" });
    sim.restart("en-2");
    await cluster.ready("en-2");
    assert.equal(reasonOf(await cluster.fence("en-2", id, 24)), "staleTerm");
    assert.equal(reasonOf(await cluster.fence("en-2", id)), "ok");
  });
});

test("seal: a longer replica is cut, the same everywhere; another length is refused; it lasts over a crash", async () => {
  for (const crash of [false, true]) {
    const cluster = new Cluster(32);
    await cluster.run(async () => {
      await cluster.allReady();
      const id = await cluster.create();
      const first = unwrap(await cluster.append("en-1", id, 0, [pattern(3_000, 1)]));
      unwrap(await cluster.append("en-1", id, Number(first.endBytes), [pattern(3_000, 2)]));
      const length = Number(first.endBytes);
      const sums = new Set<number>();
      for (const name of names) sums.add(unwrap(await cluster.seal(name, id, length)).checksum);
      assert.equal(sums.size, 1);
      if (crash) {
        for (const name of names) cluster.sim.crash(name, { unsynced: "lost" });
        for (const name of names) cluster.sim.restart(name);
        await cluster.allReady();
      }
      for (const name of names) {
        assert.equal(reasonOf(await cluster.seal(name, id, length + 3_020)), "extentSealed");
        assert.equal(sums.has(unwrap(await cluster.seal(name, id, length)).checksum), true);
        assert.equal(reasonOf(await cluster.read(name, id, first.endBytes + 20n, 100)), "outOfRange");
        assert.deepEqual(unwrap(await cluster.read(name, id, 20n, 3_000)).payload, pattern(3_000, 1));
        assert.equal((await cluster.replica(name, id)).sealedLengthBytes, first.endBytes);
      }
      assert.equal(reasonOf(await cluster.append("en-1", id, length, [pattern(1, 1)])), "extentSealed");
    });
  }
});

test("seal: appends to other extents without a pause do not keep it waiting", async () => {
  const cluster = new Cluster(24, { nodes: ["en-1"] });
  await cluster.run(async () => {
    await cluster.ready("en-1");
    const [id, other] = [await cluster.create(["en-1"]), await cluster.create(["en-1"])];
    unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
    let end = 0;
    let running = true;
    const appending = (async (): Promise<void> => {
      const inFlight: Promise<unknown>[] = [];
      for (let i = 0; running && i < 20_000; i++) {
        inFlight.push(cluster.append("en-1", other, end, [pattern(10, i)]));
        end += 30;
        // Always something that waits while something is written.
        await cluster.sim.sleep(0.05);
      }
      await Promise.all(inFlight);
    })();
    await cluster.sim.sleep(50);
    unwrap(await cluster.seal("en-1", id, 30));
    assert.ok(running && end < 20_000 * 30, "while they went on");
    running = false;
    await appending;
  });
});

test("delete: needs a version not below the replica's; the file is gone, also after a crash", async () => {
  const cluster = new Cluster(33);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const answer = unwrap(await cluster.append("en-1", id, 0, [pattern(3_000, 1)]));
    unwrap(await cluster.seal("en-1", id, Number(answer.endBytes)));
    const node = cluster.node("en-1");
    assert.equal(reasonOf(await node.deleteExtent({ smTerm: 1n, extentId: BigInt(id), version: 1n }, { timeoutMs })), "conflict");
    const elsewhere = { smTerm: 1n, extentId: BigInt(id), version: 2n, diskId: "another disk" };
    assert.equal(reasonOf(await node.deleteExtent(elsewhere, { timeoutMs })), "wrongDisk", "that disk was in this node before");
    unwrap(await node.deleteExtent({ smTerm: 1n, extentId: BigInt(id), version: 2n }, { timeoutMs }));
    assert.equal(
      cluster.sim
        .disk("en-1")
        .paths()
        .some((path) => path.endsWith(".extent")),
      false,
    );
    cluster.sim.crash("en-1", { unsynced: "lost" });
    cluster.sim.restart("en-1");
    await cluster.ready("en-1");
    assert.equal(reasonOf(await cluster.read("en-1", id, 20n, 10)), "unknownExtent");
    assert.equal(
      cluster.sim
        .disk("en-1")
        .paths()
        .some((path) => path.endsWith(".extent")),
      false,
    );
  });
});

test("disk: a failed fsync ends the process; a full disk refuses new extents and appends cleanly", async () => {
  const cluster = new Cluster(34);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    cluster.sim.disk("en-3").failNext("sync", "syncFailed", "journal");
    assert.equal(reasonOf(await cluster.append("en-1", id, 0, [pattern(10, 1)])), "extentFailed");
    assert.equal(cluster.sim.isUp("en-3"), false);
  });
  const full = new Cluster(35, { config: { reserveBytes: 2 ** 35 } });
  await full.run(async () => {
    await full.allReady();
    const replicas = await full.replicas();
    const create = { smTerm: 1n, extentId: 1n, ownerEpoch: 1n, version: 1n, replicas, stampId: String(full.facts("en-1").stampId) };
    assert.equal(reasonOf(await full.node("en-1").createExtent(create, { timeoutMs })), "diskFull");
  });
});

test("copy: a replica of a seal that was given up is made anew by a later version, and by no earlier one", async () => {
  const cluster = new Cluster(61);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
    const end = Number(unwrap(await cluster.append("en-1", id, 30, [pattern(10, 2)])).endBytes);
    unwrap(await cluster.seal("en-2", id, 30));
    unwrap(await cluster.seal("en-1", id, end));
    const copy = (version: bigint) =>
      cluster.node("en-2").copyExtent(
        {
          smTerm: 1n,
          extentId: BigInt(id),
          sealedLengthBytes: BigInt(end),
          version,
          ownerEpoch: 1n,
          diskId: String(cluster.facts("en-2").diskId),
          stampId: String(cluster.facts("en-2").stampId),
          sources: ["en-1"],
        },
        { timeoutMs },
      );
    assert.equal(reasonOf(await copy(2n)), "extentSealed");
    unwrap(await copy(5n));
    assert.equal((await cluster.replica("en-2", id)).sealedLengthBytes, BigInt(end));
    assert.deepEqual(unwrap(await cluster.read("en-2", id, 50n, 10)).payload, pattern(10, 2));
    assert.equal(reasonOf(await cluster.seal("en-2", id, end)), "ok");
  });
});

test("delete of an extent that was never opened: an empty replica goes, one with content stays, whatever its state", async () => {
  const cluster = new Cluster(36);
  await cluster.run(async () => {
    await cluster.allReady();
    const node = cluster.node("en-1");
    const diskId = String(cluster.facts("en-1").diskId);
    const remove = async (id: number, neverOpened: boolean) =>
      reasonOf(await node.deleteExtent({ smTerm: 1n, extentId: BigInt(id), version: 1n, diskId, neverOpened }, { timeoutMs }));
    const isHere = async (id: number) => (await node.getExtentReplica({ extentId: BigInt(id) }, { timeoutMs })).ok;
    const [empty, open, closed, sealed] = [await cluster.create(), await cluster.create(), await cluster.create(), await cluster.create()];
    for (const id of [open, closed, sealed]) unwrap(await cluster.append("en-1", id, 0, [pattern(3_000, id)]));
    unwrap(await cluster.fence("en-1", closed));
    const { durableBytes } = await cluster.replica("en-1", sealed);
    unwrap(await cluster.seal("en-1", sealed, Number(durableBytes)));
    assert.equal(await remove(empty, true), "ok");
    assert.equal(await isHere(empty), false);
    for (const id of [open, closed, sealed]) {
      assert.equal(await remove(id, true), "unknownExtent", "the stream manager takes it for gone");
      assert.ok(await isHere(id));
    }
    assert.equal(await remove(sealed, false), "conflict");
    cluster.sim.crash("en-1", { unsynced: "lost" });
    cluster.sim.restart("en-1");
    await cluster.ready("en-1");
    assert.equal(await remove(open, true), "unknownExtent");
    assert.equal((await cluster.replica("en-1", open)).durableBytes > 3_000n, true);
    assert.equal(await remove(open, false), "ok", "an extent that was opened, or an operator who deletes from quarantine");
    assert.equal(await isHere(open), false);
  });
});

test("create: is the same again only while the replica is empty; after an append the number was given twice", async () => {
  const cluster = new Cluster(37);
  await cluster.run(async () => {
    await cluster.allReady();
    const id = await cluster.create();
    const replicas = await cluster.replicas();
    const create = {
      smTerm: 1n,
      extentId: BigInt(id),
      ownerEpoch: 1n,
      version: 1n,
      replicas,
      stampId: String(cluster.facts("en-1").stampId),
    };
    assert.equal(reasonOf(await cluster.node("en-1").createExtent(create, { timeoutMs })), "ok");
    unwrap(await cluster.append("en-1", id, 0, [pattern(10, 1)]));
    assert.equal(reasonOf(await cluster.node("en-1").createExtent(create, { timeoutMs })), "extentStale");
  });
});
