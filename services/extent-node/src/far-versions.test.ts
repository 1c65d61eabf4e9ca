/** Extent versions that nobody recorded, in every command and to replicas in every state: later commands are obeyed as before. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RuleName, unwrap } from "@stamp/base";
import { Cluster, pattern, reasonOf } from "./testing/harness.ts";

const timeoutMs = 5_000;
const most = BigInt(Number.MAX_SAFE_INTEGER);
const node = "en-2";

async function withCluster(off: readonly RuleName[], body: (cluster: Cluster) => Promise<void>): Promise<void> {
  const cluster = new Cluster(51, { off });
  await cluster.run(async () => {
    await cluster.allReady();
    await body(cluster);
  });
}

/** An extent with 30 bytes; sealed: at all of them, as its owner's stream manager does it. */
async function extentOf(cluster: Cluster, state: "open" | "sealed"): Promise<{ id: number; end: number }> {
  const id = await cluster.create();
  const end = Number(unwrap(await cluster.append("en-1", id, 0, [pattern(30, 1)])).endBytes);
  if (state === "sealed") for (const name of ["en-1", node, "en-3"]) unwrap(await cluster.seal(name, id, end));
  return { id, end };
}

/** Each command that has a version, to one node. */
function commands(cluster: Cluster, id: number, end: number, version: bigint, smTerm: number = cluster.smTerm) {
  const client = cluster.node(node);
  const { diskId, stampId } = cluster.facts(node) as { diskId: string; stampId: string };
  const command = { smTerm: BigInt(smTerm), extentId: BigInt(id), version };
  const sealed = { ...command, diskId, sealedLengthBytes: BigInt(end), sources: ["en-1"] };
  return {
    fence: () => client.fenceExtent({ ...command, diskId }, { timeoutMs }),
    seal: () => client.sealExtent(sealed, { timeoutMs }),
    copy: () => client.copyExtent({ ...sealed, ownerEpoch: 1n, stampId }, { timeoutMs }),
    delete: () => client.deleteExtent({ ...command, diskId }, { timeoutMs }),
    create: async () => client.createExtent({ ...command, ownerEpoch: 1n, replicas: await cluster.replicas(), stampId }, { timeoutMs }),
  };
}

test("far versions: no command is obeyed with one that was not recorded, whatever state the replica is in", async () => {
  await withCluster([], async (cluster) => {
    cluster.givenVersion = 2;
    const open = await extentOf(cluster, "open");
    const sealed = await extentOf(cluster, "sealed");
    const absent = { id: 900, end: sealed.end };
    for (const [extent, state, versions] of [
      [open, "open", [most, 3n]],
      [sealed, "sealed", [most, 3n]],
      [absent, undefined, [most, 3n]],
    ] as const) {
      for (const version of versions) {
        for (const [name, command] of Object.entries(commands(cluster, extent.id, extent.end, version))) {
          assert.equal(reasonOf(await command()), "badRequest", `${name} at version ${version}, ${state ?? "not here"}`);
        }
      }
      if (state === undefined) assert.equal(reasonOf(await cluster.fence(node, extent.id)), "unknownExtent");
      else assert.equal((await cluster.replica(node, extent.id)).fenced, state === "sealed");
    }
    unwrap(await cluster.node(node).getNodeReport({ smTerm: 5n }, { timeoutMs }));
    for (const [name, command] of Object.entries(commands(cluster, open.id, open.end, most, 4))) {
      assert.equal(reasonOf(await command()), "staleTerm", `${name} of an older leader`);
    }
    cluster.smTerm = 5;
    // Later calls are obeyed as ever.
    assert.equal(reasonOf(await cluster.append("en-1", open.id, open.end, [pattern(5, 2)])), "ok");
    const { durableBytes } = unwrap(await cluster.fence(node, open.id));
    assert.equal(reasonOf(await cluster.seal(node, open.id, Number(durableBytes))), "ok");
    for (const { id, end } of [open, sealed]) assert.equal(reasonOf(await commands(cluster, id, end, 2n).delete()), "ok");
  });
});

test("far versions: a version that the stream manager recorded passes; while it can't be asked nobody guesses, and steps do not add up", async () => {
  await withCluster([], async (cluster) => {
    const { id, end } = await extentOf(cluster, "sealed");
    cluster.givenVersion = 0;
    assert.equal(reasonOf(await commands(cluster, id, end, 3n).seal()), "notReady");
    cluster.givenVersion = 400;
    for (const version of [400n, 401n]) {
      const expected = version === 400n ? "ok" : "badRequest";
      assert.equal(reasonOf(await commands(cluster, id, end, version).seal()), expected, `${version}`);
    }
    cluster.sim.crash(node, { unsynced: "lost" });
    cluster.sim.restart(node);
    await cluster.ready(node);
    assert.equal(Number((await cluster.replica(node, id)).version), 400);
    assert.equal(reasonOf(await commands(cluster, id, end, 401n).seal()), "badRequest");
    assert.equal(reasonOf(await commands(cluster, id, end, 2n).delete()), "conflict");
    assert.equal(reasonOf(await commands(cluster, id, end, 400n).delete()), "ok");
  });
});

test("far versions: appends, the first fence and seal, and a deletion of what was sealed once ask nobody", async () => {
  await withCluster([], async (cluster) => {
    cluster.givenVersion = 0;
    const { id, end } = await extentOf(cluster, "open");
    for (const name of ["en-1", node, "en-3"]) {
      unwrap(await cluster.fence(name, id));
      unwrap(await cluster.seal(name, id, end));
    }
    assert.equal(reasonOf(await commands(cluster, id, end, 2n).delete()), "ok");
    assert.equal(cluster.versionQuestions, 0);
  });
});

test("far versions: without the rule a fence keeps every seal out, and a seal every deletion", async () => {
  for (const off of [[], ["versionsVouched"]] satisfies RuleName[][]) {
    await withCluster(off, async (cluster) => {
      cluster.givenVersion = 2;
      const fenced = await extentOf(cluster, "open");
      await commands(cluster, fenced.id, fenced.end, most).fence();
      const sealed = await extentOf(cluster, "sealed");
      await commands(cluster, sealed.id, sealed.end, most).seal();
      const later = [await cluster.seal(node, fenced.id, fenced.end), await commands(cluster, sealed.id, sealed.end, 2n).delete()];
      assert.deepEqual(later.map(reasonOf), off.length === 0 ? ["ok", "ok"] : ["extentStale", "conflict"]);
    });
  }
});
