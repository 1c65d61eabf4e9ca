/**
 * A leader that dies anywhere inside a seal, a creation, a roll, an opening or a change of several lists: the next leader finishes
 * what was recorded, and drops what no caller has heard of. The leader is crashed at every tenth of a millisecond of the call, on virtual time; what
 * was recorded at that moment says which steps were hit.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import { decodeStored } from "@stamp/stream";
import type { ExtentLocation } from "@stamp/wire";
import { ExtentState } from "@stamp/wire";
import { Cluster, first } from "../testing/cluster.ts";

interface Prepared {
  readonly cluster: Cluster;
  readonly extent: ExtentLocation;
  readonly endBytes: bigint;
}

interface Call {
  /** Before the call whose leader dies. */
  readonly before?: (prepared: Prepared) => Promise<void>;
  /** Goes on until some leader has done it. */
  readonly call: (prepared: Prepared) => Promise<unknown>;
  readonly after: (prepared: Prepared) => Promise<void>;
}

const stepMs = 0.1;

/** Phases of all extents and how many streams there are, as the store has them now: one letter each. */
async function recorded(cluster: Cluster): Promise<string> {
  const world = cluster.sim.world("watcher");
  const entries = unwrap(await new MetadataClient(world, "lock").list("sm/", 1_000));
  let found = "";
  let streams = 0;
  for (const { key, value } of entries) {
    const stored = decodeStored(key, value, (bytes) => world.digest.crc32c(bytes));
    if (!stored.ok) continue;
    if (stored.value.kind === "extent") found += `${stored.value.record.phase} `;
    if (stored.value.kind === "stream") streams += 1;
  }
  return `${found}${streams}`;
}

/** With the leader dead after `crashMs`, undefined: not at all. What was recorded then, and how long the call took. */
async function run(work: Call, crashMs: number | undefined): Promise<{ readonly found: string; readonly tookMs: number }> {
  const cluster = new Cluster({ managers: ["sm1", "sm2"], seed: 5 });
  const { sim } = cluster;
  let found = "";
  let tookMs = 0;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(4_000);
    const extent = first(await cluster.next("/s", 1, 0n));
    const { endBytes } = unwrap(await cluster.append(extent, 1, 0n, "acknowledged"));
    const prepared = { cluster, extent, endBytes };
    await work.before?.(prepared);
    const startMs = sim.nowMs;
    const call = work.call(prepared).then(() => {
      tookMs = sim.nowMs - startMs;
    });
    if (crashMs !== undefined) {
      await sim.sleep(crashMs);
      sim.crash(cluster.calls.leader ?? "", { stayDown: true });
      found = await recorded(cluster);
    }
    await call;
    await work.after(prepared);
    await cluster.until("every sealed extent has three copies, nothing is half made", async () =>
      (await cluster.extents()).every(
        (one) =>
          one.state === ExtentState.DROPPED ||
          one.state === ExtentState.OPEN ||
          (one.state === ExtentState.SEALED && one.intactCopies === 3),
      ),
    );
    const kept = (await cluster.extents()).filter((one) => one.state !== ExtentState.DROPPED);
    assert.ok(
      kept.every((one) => one.references > 0),
      "what is in no list is dropped",
    );
    const info = kept.find((one) => one.location?.extentId === extent.extentId);
    assert.equal(info?.location?.sealedLengthBytes, endBytes, "what was acknowledged is there");
  });
  return { found, tookMs };
}

async function everywhere(work: Call): Promise<Set<string>> {
  const { tookMs } = await run(work, undefined);
  const hit = new Set<string>();
  for (let crashMs = 0; crashMs <= tookMs + stepMs; crashMs += stepMs) hit.add((await run(work, crashMs)).found);
  return hit;
}

const next = ({ cluster, extent, endBytes }: Prepared, complete = false) =>
  cluster.sm((sm, timeoutMs) =>
    sm.sealAndAllocate({ name: "/s", ownerEpoch: 1n, extentId: extent.extentId, knownCommittedBytes: endBytes, complete }, { timeoutMs }),
  );

/** The list has this extent and one successor, which takes appends. */
async function oneSuccessor({ cluster, extent }: Prepared): Promise<void> {
  const info = unwrap(await cluster.sm((sm, timeoutMs) => sm.getStream({ name: "/s" }, { timeoutMs })));
  assert.deepEqual([info.extents.length, info.extents[0]?.extentId], [2, extent.extentId]);
  unwrap(await cluster.append(info.extents[1], 1, 0n, "goes on"));
}

test("resume: the leader dies at any moment of a seal and the creation of the successor", async () => {
  const hit = await everywhere({ call: async (prepared) => unwrap(await next(prepared)), after: oneSuccessor });
  for (const step of ["open 1", "sealing allocating 1", "sealed allocating 1", "sealed open 1"]) {
    assert.ok(hit.has(step), `no leader died at: ${step} (${[...hit].join(", ")})`);
  }
});

test("resume: the leader dies at any moment of a roll to an extent made ahead", async () => {
  const hit = await everywhere({
    before: async ({ cluster, extent }) => {
      const ahead = { name: "/s", ownerEpoch: 1n, extentId: extent.extentId };
      unwrap(await cluster.sm((sm, timeoutMs) => sm.allocateAhead(ahead, { timeoutMs })));
      await cluster.sim.sleep(100);
    },
    call: async (prepared) => unwrap(await next(prepared, true)),
    after: oneSuccessor,
  });
  assert.deepEqual([...hit].sort(), ["open allocating 1", "sealed open 1"], "both or neither");
});

test("resume: the leader dies at any moment of an opening by a new owner, who is then the only one", async () => {
  const hit = await everywhere({
    call: ({ cluster }) => cluster.open("/s", 2),
    after: async ({ cluster, extent, endBytes }) => {
      const stale = await cluster.tryNext("/s", 1, extent.extentId, endBytes, [], 20_000);
      assert.ok(!stale.ok && stale.failure.reason === "staleOwnerEpoch");
      assert.ok(!(await cluster.append(extent, 1, endBytes, "late")).ok);
    },
  });
  for (const step of ["open 1", "sealing 1", "sealed 1"]) assert.ok(hit.has(step), `no leader died at: ${step}`);
});

test("resume: the leader dies at any moment of a split: both halves are there, or the parent", async () => {
  const edits = [
    { name: "/s", ownerEpoch: 2n },
    { name: "/l", content: { ownerEpoch: 3n, extents: [{ stream: "/s" }] } },
    { name: "/r", content: { ownerEpoch: 4n, extents: [{ stream: "/s" }] } },
  ];
  const hit = await everywhere({
    before: async ({ cluster }) => void (await cluster.open("/s", 2)),
    // The caller looks after an unknown outcome whether it happened, as it must.
    call: async ({ cluster }) => {
      for (;;) {
        const made = await cluster.sm((sm, timeoutMs) => sm.statStream({ name: "/l" }, { timeoutMs }));
        if (made.ok) return;
        await cluster.sm((sm, timeoutMs) => sm.multiModify({ edits }, { timeoutMs }), 1_000);
      }
    },
    after: async ({ cluster, extent }) => {
      const streams = unwrap(await cluster.sm((sm, timeoutMs) => sm.listStreams({}, { timeoutMs }))).streams;
      assert.deepEqual(
        streams.map((stream) => [stream.name, stream.extents.map((one) => one.extentId)]),
        [
          ["/l", [extent.extentId]],
          ["/r", [extent.extentId]],
        ],
      );
    },
  });
  assert.deepEqual([...hit].sort(), ["sealed 1", "sealed 2"], "one parent or two children, never anything between");
});
