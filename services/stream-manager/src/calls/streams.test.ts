/** The stream API over the wire: stat, rename, concatenate, MultiModify, pages, and the roll from a full extent to the next. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fromUtf8, type RuleName, unwrap, utf8 } from "@stamp/base";
import { MetadataClient } from "@stamp/metadata-store";
import type { ExtentLocation } from "@stamp/wire";
import { ExtentState, LockService, StreamManager } from "@stamp/wire";
import { Cluster, first } from "../testing/cluster.ts";

/** Appends one block to a new last extent of the stream; gives that extent and its end. */
async function write(cluster: Cluster, name: string, epoch: number, last: bigint, text: string) {
  const extent = first(await cluster.next(name, epoch, last));
  const { endBytes } = unwrap(await cluster.append(extent, epoch, 0n, text));
  return { extent, endBytes };
}

async function textOf(cluster: Cluster, extents: readonly ExtentLocation[]): Promise<string> {
  let text = "";
  for (const { extentId, addresses } of extents) {
    const page = unwrap(await cluster.en(addresses[0] ?? "").readBlocks({ extentId, offsetBytes: 0n }, { timeoutMs: 1_000 }));
    text += page.payload.map(fromUtf8).join("");
  }
  return text;
}

test("streams: renamed, stated, listed, concatenated and deleted over the wire; the data stay where they are", async () => {
  const cluster = new Cluster({ config: { deletionGraceMs: 2_000 } });
  await cluster.sim.run(async () => {
    await cluster.open("/a", 1);
    await cluster.open("/b", 7);
    await write(cluster, "/a", 1, 0n, "one ");
    await write(cluster, "/b", 7, 0n, "two ");
    const renamed = unwrap(
      await cluster.sm((sm, timeoutMs) => sm.renameStream({ name: "/a", ownerEpoch: 1n, newName: "/c" }, { timeoutMs })),
    );
    assert.deepEqual([renamed.name, renamed.ownerEpoch, renamed.extentCount, renamed.open], ["/c", 1n, 1n, true]);
    const gone = await cluster.sm((sm, timeoutMs) => sm.statStream({ name: "/a" }, { timeoutMs }));
    assert.ok(!gone.ok && gone.failure.reason === "streamNotFound");
    for (const [refusal, answer] of [
      [/begin with 1/, cluster.sm((sm, timeoutMs) => sm.createStream({ name: "/z", ownerEpoch: 0n }, { timeoutMs }))],
      [
        /begin with 1/,
        cluster.sm((sm, timeoutMs) => sm.multiModify({ edits: [{ name: "/z", content: { ownerEpoch: 0n, extents: [] } }] }, { timeoutMs })),
      ],
      [
        /appended to itself/,
        cluster.sm((sm, timeoutMs) =>
          sm.concatenateStreams({ target: "/c", targetOwnerEpoch: 1n, source: "/c", sourceOwnerEpoch: 1n }, { timeoutMs }),
        ),
      ],
    ] as const) {
      const refused = await answer;
      assert.ok(!refused.ok && refused.failure.code === "invalidArgument" && refusal.test(refused.failure.message), String(refusal));
    }
    const request = { target: "/c", targetOwnerEpoch: 1n, source: "/b", sourceOwnerEpoch: 7n };
    const joined = unwrap(await cluster.sm((sm, timeoutMs) => sm.concatenateStreams(request, { timeoutMs })));
    assert.deepEqual([joined.extentCount, joined.open, joined.sealedBytes > 0n], [2n, false, true]);
    const again = await write(cluster, "/c", 1, joined.lastExtentId, "three");
    const opened = await cluster.open("/c", 2);
    assert.equal(await textOf(cluster, opened.extents), "one two three");
    assert.equal(opened.extents.at(-1)?.sealedLengthBytes, again.endBytes);
    const listed = unwrap(await cluster.sm((sm, timeoutMs) => sm.listStreams({}, { timeoutMs })));
    assert.deepEqual(
      listed.streams.map((stream) => [stream.name, stream.extentCount, stream.more]),
      [["/c", 3n, false]],
    );
    unwrap(await cluster.sm((sm, timeoutMs) => sm.deleteStream({ name: "/c", ownerEpoch: 2n }, { timeoutMs })));
    await cluster.until("everything is deleted", async () => (await cluster.extents()).length === 0);
    for (const address of opened.extents.flatMap((extent) => extent.addresses)) {
      assert.equal(await cluster.replica(address, opened.extents[0]?.extentId ?? 0n), undefined);
    }
  });
});

test("streams: a split made of MultiModify fences the old owner; both halves read everything, and it is kept until both let go", async () => {
  const cluster = new Cluster({ managers: ["sm1", "sm2"], config: { deletionGraceMs: 1_000 } });
  await cluster.sim.run(async () => {
    await cluster.open("/p", 1);
    const { extent } = await write(cluster, "/p", 1, 0n, "shared");
    const opened = await cluster.open("/p", 2);
    const edits = [
      { name: "/p", ownerEpoch: 2n, listVersion: opened.listVersion },
      { name: "/l", content: { ownerEpoch: 3n, extents: [{ stream: "/p" }] } },
      { name: "/r", content: { ownerEpoch: 4n, extents: [{ stream: "/p" }] } },
    ];
    const stale = edits.map((edit) => (edit.listVersion === undefined ? edit : { ...edit, listVersion: edit.listVersion - 1n }));
    const refused = await cluster.sm((sm, timeoutMs) => sm.multiModify({ edits: stale }, { timeoutMs }));
    assert.ok(!refused.ok && refused.failure.reason === "conflict");
    const made = unwrap(await cluster.sm((sm, timeoutMs) => sm.multiModify({ edits }, { timeoutMs })));
    assert.deepEqual(
      made.streams.map((stream) => [stream.name, stream.ownerEpoch, stream.firstExtentId]),
      [
        ["/l", 3n, extent.extentId],
        ["/r", 4n, extent.extentId],
      ],
    );
    assert.ok(!(await cluster.tryNext("/p", 2, extent.extentId, 0n, [], 1_000)).ok);
    const right = await cluster.open("/r", 4);
    await write(cluster, "/l", 3, extent.extentId, "left");
    unwrap(await cluster.sm((sm, timeoutMs) => sm.deleteStream({ name: "/l", ownerEpoch: 3n }, { timeoutMs })));
    // Also the next leader counts the references of the other half.
    cluster.sim.crash(cluster.calls.leader ?? "", { stayDown: true });
    await cluster.until("only the shared extent is left", async () => (await cluster.extents()).length === 1, 60_000);
    assert.deepEqual(
      (await cluster.extents()).map((one) => one.references),
      [1],
    );
    assert.equal(await textOf(cluster, right.extents), "shared");
  });
});

test("streams: what was made ahead for a stream that is to come is opened with it, and its owner appends at once", async () => {
  const cluster = new Cluster();
  await cluster.sim.run(async () => {
    const ahead = { name: "/l", ownerEpoch: 3n, extentId: 0n };
    unwrap(await cluster.sm((sm, timeoutMs) => sm.allocateAhead(ahead, { timeoutMs })));
    const made = await cluster.extents();
    assert.deepEqual(
      made.map((one) => one.state),
      [ExtentState.ALLOCATING],
      "it is there when the call is answered",
    );
    const edits = ["/l", "/r"].map((name) => ({ name, content: { ownerEpoch: 3n, extents: [], openAhead: true } }));
    const { streams, opened } = unwrap(await cluster.sm((sm, timeoutMs) => sm.multiModify({ edits }, { timeoutMs })));
    assert.deepEqual(
      streams.map((stream) => [stream.name, stream.extentCount]),
      [
        ["/l", 1n],
        ["/r", 0n],
      ],
    );
    assert.deepEqual(
      opened.map(({ stream, extent }) => [stream, extent?.extentId]),
      [["/l", made[0]?.location?.extentId]],
      "nothing was made for the other",
    );
    const { endBytes } = unwrap(await cluster.append(opened[0]?.extent, 3, 0n, "at once"));
    assert.ok(!(await cluster.append(opened[0]?.extent, 2, endBytes, "another owner")).ok);
    const taken = await cluster.open("/l", 4);
    assert.equal(await textOf(cluster, taken.extents), "at once");
  });
});

test("streams: what was made ahead for a stream that does not come is dropped, also when the change is refused", async () => {
  const cluster = new Cluster();
  await cluster.sim.run(async () => {
    const ahead = { name: "/l", ownerEpoch: 3n, extentId: 0n };
    unwrap(await cluster.sm((sm, timeoutMs) => sm.allocateAhead(ahead, { timeoutMs })));
    const made = { name: "/l", content: { ownerEpoch: 3n, extents: [], openAhead: true } };
    const refused = await cluster.sm((sm, timeoutMs) =>
      sm.multiModify({ edits: [made, { name: "/none", ownerEpoch: 1n }] }, { timeoutMs }),
    );
    assert.ok(!refused.ok && refused.failure.reason === "streamNotFound");
    await cluster.until("dropped", async () => (await cluster.extents()).every((one) => one.state !== ExtentState.ALLOCATING));
  });
});

test("streams: a full extent is left in one step for the one made ahead, and every replica is sealed at its end", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    const { extent, endBytes } = await write(cluster, "/s", 1, 0n, "full");
    const ahead = { name: "/s", ownerEpoch: 1n, extentId: extent.extentId };
    for (let i = 0; i < 3; i++) unwrap(await cluster.sm((sm, timeoutMs) => sm.allocateAhead(ahead, { timeoutMs })));
    await sim.sleep(200);
    assert.deepEqual(
      (await cluster.extents()).map((one) => one.state),
      [ExtentState.OPEN, ExtentState.ALLOCATING],
      "one, and it is not in the list",
    );
    assert.equal((await cluster.sm((sm, timeoutMs) => sm.getStream({ name: "/s" }, { timeoutMs }))).ok, true);
    const request = { name: "/s", ownerEpoch: 1n, extentId: extent.extentId, knownCommittedBytes: endBytes, complete: true };
    const startMs = sim.nowMs;
    const rolled = unwrap(await cluster.sm((sm, timeoutMs) => sm.sealAndAllocate(request, { timeoutMs })));
    const tookMs = sim.nowMs - startMs;
    assert.ok(tookMs < 5, `${tookMs} ms: one transaction`);
    assert.equal(rolled.sealedLengthBytes, endBytes);
    const repeated = unwrap(await cluster.sm((sm, timeoutMs) => sm.sealAndAllocate(request, { timeoutMs })));
    assert.equal(repeated.extent?.extentId, rolled.extent?.extentId);
    await cluster.until("sealed everywhere", async () => (await cluster.extents())[0]?.intactCopies === 3);
    for (const address of extent.addresses) {
      assert.equal((await cluster.replica(address, extent.extentId))?.sealedLengthBytes, endBytes);
    }
    assert.ok((await cluster.append(rolled.extent, 1, 0n, "next")).ok);
  });
});

test("streams: what was made ahead lies elsewhere, so that it is there when the primary of the extent fails", async () => {
  const cluster = new Cluster({ nodes: ["en1", "en2", "en3", "en4", "en5"] });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(3_000);
    let { extent } = await cluster.next("/s", 1, 0n);
    for (let i = 0; i < 5; i++) {
      assert.ok(extent);
      const ahead = { name: "/s", ownerEpoch: 1n, extentId: extent.extentId };
      unwrap(await cluster.sm((sm, timeoutMs) => sm.allocateAhead(ahead, { timeoutMs })));
      await sim.sleep(100);
      const made = (await cluster.extents()).filter((one) => one.state === ExtentState.ALLOCATING);
      assert.equal(made.length, 1);
      const { extent: next }: { extent?: ExtentLocation | undefined } = await cluster.next("/s", 1, extent.extentId, 0n, [
        extent.addresses[0] ?? "",
      ]);
      assert.equal(next?.extentId, made[0]?.location?.extentId, "what was made ahead was taken");
      const old = new Set(extent.addresses);
      assert.equal(next?.addresses.filter((address) => old.has(address)).length, 1);
      assert.ok(!next?.addresses.includes(extent.addresses[0] ?? ""));
      extent = next;
    }
  });
});

test("streams: what was made ahead is dropped when another owner comes or a node of it is gone", async () => {
  const cluster = new Cluster();
  const { sim } = cluster;
  const ahead = async (epoch: bigint, extentId: bigint): Promise<void> => {
    unwrap(await cluster.sm((sm, timeoutMs) => sm.allocateAhead({ name: "/s", ownerEpoch: epoch, extentId }, { timeoutMs })));
    await sim.sleep(200);
  };
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await sim.sleep(4_000);
    const { extent } = await write(cluster, "/s", 1, 0n, "x");
    await ahead(1n, extent.extentId);
    await cluster.open("/s", 2);
    await cluster.until("dropped", async () => (await cluster.extents()).every((one) => one.state !== ExtentState.ALLOCATING));
    const second = first(await cluster.next("/s", 2, extent.extentId));
    await ahead(2n, second.extentId);
    const made = (await cluster.extents()).find((one) => one.state === ExtentState.ALLOCATING);
    assert.ok(made);
    const dead = made.nodeIds[0] ?? "";
    sim.crash(dead, { stayDown: true });
    const request = { name: "/s", ownerEpoch: 2n, extentId: second.extentId, avoidAddresses: [dead] };
    const next = unwrap(await cluster.sm((sm, timeoutMs) => sm.sealAndAllocate(request, { timeoutMs })));
    assert.ok(!next.extent?.addresses.includes(dead) && next.extent?.extentId !== made.location?.extentId);
  });
});

/** How long a dropped extent is kept while its manager restarts again and again, in milliseconds. */
async function keptOverRestarts(without: readonly RuleName[]): Promise<number> {
  const cluster = new Cluster({ config: { deletionGraceMs: 60_000 }, without: [...without] });
  const { sim } = cluster;
  return sim.run(async () => {
    await cluster.open("/s", 1);
    await write(cluster, "/s", 1, 0n, "x");
    unwrap(await cluster.sm((sm, timeoutMs) => sm.deleteStream({ name: "/s", ownerEpoch: 1n }, { timeoutMs })));
    const droppedMs = sim.nowMs;
    const gone = async (): Promise<boolean> => (await cluster.extents()).length === 0;
    for (let restarts = 0; restarts < 3; restarts++) {
      await sim.sleep(15_000);
      assert.equal(await gone(), false, "kept during the grace");
      sim.crash("sm1", { stayDown: true });
      sim.restart("sm1");
      await sim.sleep(1_000);
    }
    await cluster.until("it is deleted", gone, 80_000);
    return sim.nowMs - droppedMs;
  });
}

test("garbage: a step of the wall clock ends no grace", async () => {
  const cluster = new Cluster({ config: { deletionGraceMs: 60_000 } });
  const { sim } = cluster;
  await sim.run(async () => {
    await cluster.open("/s", 1);
    await write(cluster, "/s", 1, 0n, "x");
    unwrap(await cluster.sm((sm, timeoutMs) => sm.deleteStream({ name: "/s", ownerEpoch: 1n }, { timeoutMs })));
    await sim.sleep(15_000);
    sim.jumpWallClock("sm1", 3_600_000);
    await sim.sleep(30_000);
    assert.equal((await cluster.extents()).length, 1, "kept during the grace");
    await cluster.until("it is deleted", async () => (await cluster.extents()).length === 0, 30_000);
  });
});

test("garbage: the grace of a dropped extent goes on over leaders; without the rule each begins it anew", async () => {
  const keptMs = await keptOverRestarts([]);
  assert.ok(keptMs >= 60_000 && keptMs < 70_000, `${keptMs} ms`);
  assert.ok((await keptOverRestarts(["dropTimeRecorded"])) > 100_000);
});

test("streams: no call records an owner epoch far above the last one that was given", async () => {
  for (const without of [[], ["mintedEpochsOnly"]] satisfies RuleName[][]) {
    const cluster = new Cluster({ without });
    const { sim } = cluster;
    await sim.run(async () => {
      await cluster.open("/s", 1);
      await cluster.open("/pm/map/metadata", 1);
      const tryAll = async (ownerEpoch: bigint, suffix: string): Promise<string[]> => {
        const calls = [
          cluster.sm((sm, timeoutMs) => sm.createStream({ name: `/c${suffix}`, ownerEpoch }, { timeoutMs })),
          cluster.sm((sm, timeoutMs) => sm.openStream({ name: `/o${suffix}`, ownerEpoch, create: true }, { timeoutMs })),
          cluster.sm((sm, timeoutMs) => sm.openStreams({ names: ["/s", `/o${suffix}`], ownerEpoch, create: true }, { timeoutMs })),
          cluster.sm((sm, timeoutMs) =>
            sm.multiModify({ edits: [{ name: `/m${suffix}`, content: { ownerEpoch, extents: [] } }] }, { timeoutMs }),
          ),
        ];
        return (await Promise.all(calls)).map((answer) => (answer.ok ? "ok" : answer.failure.reason));
      };
      const expected = without.length === 0 ? "badRequest" : "ok";
      assert.deepEqual(await tryAll(BigInt(Number.MAX_SAFE_INTEGER), "max"), Array(4).fill(expected));
      if (without.length > 0) return;

      // Epochs that the issuer recorded pass, and no more than a little above them. Terms are another count.
      const lock = sim.world("pm").transport.client("lock", LockService);
      const lease = { name: "partition-manager", holder: "pm", address: "pm", instance: "1", identity: "1", termMs: 60_000 };
      const { leaseEpoch } = unwrap(await lock.acquireLease(lease, { timeoutMs: 1_000 }));
      const fence = { leaseName: "partition-manager", leaseEpoch: Number(leaseEpoch) };
      const writes = [{ key: "partition-manager/owner-epoch", value: utf8("5000") }];
      unwrap(await new MetadataClient(sim.world("pm"), "lock").transact({ fence, conditions: [], writes }, 1_000));
      assert.deepEqual(await tryAll(5_000n, "given"), Array(4).fill("ok"));
      assert.deepEqual(await tryAll(5_257n, "above"), Array(4).fill("badRequest"));
      for (const [epoch, answer] of [
        [18, "badRequest"],
        [5_000, "badRequest"],
        [17, "ok"],
      ] as const) {
        const opened = await cluster.tryOpen("/pm/map/metadata", epoch);
        assert.equal(opened.ok ? "ok" : opened.failure.reason, answer, `term ${epoch}`);
      }
      sim.partition(["sm1"], ["lock"]);
      const unchecked = await sim
        .world("owner")
        .transport.client("sm1", StreamManager)
        .openStream({ name: "/s", ownerEpoch: 9_000n }, { timeoutMs: 20_000 });
      assert.ok(!unchecked.ok && unchecked.failure.reason === "notReady");
      sim.heal();
      assert.ok((await cluster.tryOpen("/s", 5_001)).ok);
    });
  }
});
