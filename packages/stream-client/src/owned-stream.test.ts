import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, ownerEpoch, unwrap } from "@stamp/base";
import { type ExtentLocation, fromWire, StreamManager, toWire } from "@stamp/wire";
import type { OwnedStream, Place } from "./index.ts";
import { block, nodeNames, Stamp } from "./testing/harness.ts";

const forever = { timeoutMs: Number.POSITIVE_INFINITY };

test("owned stream: pipelined appends come back from their places and in order, over many extents", async () => {
  const stamp = new Stamp(1, { client: { extentTargetBytes: 2_000 } });
  await stamp.sim.run(async () => {
    const client = stamp.client();
    const stream = unwrap(await client.openForOwner("/a", ownerEpoch(1), { create: true, timeoutMs: 30_000 }));
    const texts = Array.from({ length: 60 }, (_, i) => `record ${i} ${"x".repeat(i * 3)}`);
    const placed = (await Promise.all(texts.map((text) => stream.append(block(text), forever)))).map(
      (outcome) => unwrap(outcome)[0] as Place,
    );
    assert.ok(stream.extents.length > 3, `${stream.extents.length} extents`);
    for (const [i, place] of placed.entries()) {
      assert.ok(stream.knows(place.extentId));
      assert.equal(new TextDecoder().decode(unwrap(await client.reader.read(place, { timeoutMs: 5_000 }))), texts[i]);
    }
    const chunks: string[] = [];
    for await (const chunk of client.reader.readPlaces(placed, { windowBytes: 200 })) chunks.push(new TextDecoder().decode(chunk));
    assert.equal(chunks.join(""), texts.join(""));
    assert.ok(chunks.length < texts.length && chunks.every((chunk) => chunk.length <= 200), "neighbours together, within the window");
    assert.deepEqual(await stamp.content("/a", 2), texts);
    for (const [i, place] of placed.entries()) assert.deepEqual(await stamp.content("/a", 3 + i, place), texts.slice(i + 1));
  });
});

test("owned stream: blocks of one append are together, and sizes are checked before anything is sent", async () => {
  const stamp = new Stamp(2);
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    const places = unwrap(await stream.append([...block("one"), ...block("two")], forever));
    assert.deepEqual(
      places.map(({ lengthBytes }) => lengthBytes),
      [3, 3],
    );
    for (const blocks of [[], [new Uint8Array(0)], [new Uint8Array(4 * 1024 * 1024 + 1)]]) {
      const asked = stream.append(blocks, forever);
      assert.equal(stream.pendingAppends, 0, "nothing waits or is sent");
      const refused = await asked;
      assert.ok(!refused.ok && refused.failure.reason === "badRequest" && refused.failure.applied === "no");
    }
    assert.deepEqual(await stamp.content("/a", 2), ["one", "two"]);
  });
});

for (const victim of [...nodeNames, "sm1", "lock"]) {
  test(`owned stream: ${victim} dies again and again while appends are in flight, nothing acknowledged is lost or twice`, async () => {
    const stamp = new Stamp(30 + victim.length, { client: { extentTargetBytes: 20_000 }, restartAfterMs: 400 });
    await stamp.sim.run(async () => {
      const stream = await stamp.open("/a", 1);
      const outcomes: Promise<Outcome<readonly Place[]>>[] = [];
      for (let i = 0; i < 120; i++) {
        outcomes.push(stream.append(block(`${i}`), forever));
        if (i % 30 === 15) stamp.sim.crash(victim);
        await stamp.sim.sleep(i % 4 === 0 ? 40 : 1);
      }
      for (const outcome of outcomes) unwrap(await outcome);
      const content = await stamp.content("/a", 2);
      assert.deepEqual(
        content,
        outcomes.map((_, i) => `${i}`),
      );
    });
  });
}

test("owned stream: the successor avoids the secondary that stands still, not the primary that named it", async () => {
  for (const seed of [41, 42, 43, 44]) {
    const stamp = new Stamp(seed);
    await stamp.sim.run(async () => {
      const stream = await stamp.open("/a", 1);
      unwrap(await stream.append(block("first"), forever));
      const manager = stamp.sim.world("tester").transport.client("sm1", StreamManager);
      const last = async () => {
        const info = unwrap(await manager.getStream({ name: "/a", afterExtentId: 0n, limit: 0 }, { timeoutMs: 5_000 }));
        return info.extents.at(-1) as ExtentLocation;
      };
      const before = await last();
      const [primary, secondary] = before.addresses as [string, string];
      stamp.sim.pause(secondary);
      unwrap(await stream.append(block("second"), forever));
      const after = await last();
      assert.ok(!after.addresses.includes(secondary) && after.addresses.includes(primary), `seed ${seed}: ${after.addresses}`);
      assert.equal(after.extentId, before.extentId + 1n, "no extent was tried on the silent node");
    });
  }
});

test("owned stream: random crashes of everything, several seeds, order kept and nothing twice", async () => {
  for (let seed = 100; seed < 112; seed++) {
    const stamp = new Stamp(seed, { client: { extentTargetBytes: 3_000 }, restartAfterMs: 300 });
    await stamp.sim.run(async () => {
      const stream = await stamp.open("/a", 1);
      const all = [...nodeNames, "sm1", "lock"];
      const outcomes: Promise<Outcome<readonly Place[]>>[] = [];
      for (let i = 0; i < 60; i++) {
        outcomes.push(stream.append(block(`${i} ${"y".repeat(i)}`), forever));
        if (stamp.sim.prng.chance(0.1)) stamp.sim.crash(stamp.sim.prng.pick(all), { unsynced: "kept" });
        await stamp.sim.sleep(stamp.sim.prng.below(60));
      }
      for (const outcome of outcomes) unwrap(await outcome);
      assert.deepEqual(
        await stamp.content("/a", 2),
        outcomes.map((_, i) => `${i} ${"y".repeat(i)}`),
        `seed ${seed}`,
      );
    });
  }
});

test("owned stream: a second owner fences the first, whose appends are either in the list or never", async () => {
  for (let seed = 50; seed < 56; seed++) {
    const stamp = new Stamp(seed);
    await stamp.sim.run(async () => {
      const first = await stamp.open("/a", 1, "first");
      unwrap(await first.append(block("before"), forever));
      const outcomes: Promise<Outcome<readonly Place[]>>[] = [];
      const write = async (): Promise<void> => {
        for (let i = 0; i < 50; i++) {
          outcomes.push(first.append(block(`${i}`), forever));
          await stamp.sim.sleep(1);
        }
      };
      const writing = write();
      await stamp.sim.sleep(stamp.sim.prng.below(30));
      const second = await stamp.open("/a", 2, "second");
      const found: string[] = [];
      for await (const { payload } of second.readAll()) found.push(new TextDecoder().decode(payload));
      await writing;
      assert.match(await first.whenFenced, /staleOwnerEpoch/);
      let acknowledged = 0;
      for (const [i, pending] of outcomes.entries()) {
        const outcome = await pending;
        if (outcome.ok) assert.equal(found[++acknowledged], `${i}`);
        else {
          assert.equal(outcome.failure.reason, "staleOwnerEpoch");
          if (outcome.failure.applied === "no") assert.ok(!found.includes(`${i}`), `${i} was said not to have happened`);
        }
      }
      assert.ok(acknowledged < 50, "the fence came in time for the test to mean something");
      assert.equal(first.fenced, true);
      unwrap(await second.append(block("after"), forever));
    });
  }
});

test("owned stream: past its deadline an append that was not sent is taken back, one that was sent is unknown and goes on", async () => {
  const stamp = new Stamp(7);
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    stamp.sim.crash("sm1", { stayDown: true });
    // Without an extent nothing can be sent.
    const unsent = await stream.append(block("never"), { timeoutMs: 200 });
    assert.ok(!unsent.ok && unsent.failure.applied === "no" && unsent.failure.reason === "timeout");
    stamp.sim.restart("sm1");
    unwrap(await stream.append(block("one"), forever));
    for (const node of nodeNames) stamp.sim.pause(node);
    const sent = await stream.append(block("two"), { timeoutMs: 100 });
    assert.ok(!sent.ok && sent.failure.applied === "unknown");
    for (const node of nodeNames) stamp.sim.resume(node);
    unwrap(await stream.append(block("three"), forever));
    assert.deepEqual(await stamp.content("/a", 2), ["one", "two", "three"]);
  });
});

test("owned stream: what waits for a next extent is bounded", async () => {
  const stamp = new Stamp(8, { client: { waitingBytesMax: 10_000, inFlightBytesMax: 5_000 } });
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    stamp.sim.crash("sm1", { stayDown: true });
    const outcomes = Array.from({ length: 20 }, () => stream.append([new Uint8Array(1_000)], forever));
    const refused = (await Promise.race([outcomes.at(-1), stamp.sim.sleep(100)])) as Outcome<unknown> | undefined;
    assert.ok(refused !== undefined && !refused.ok && refused.failure.reason === "overloaded");
    stamp.sim.restart("sm1");
    const done = (await Promise.all(outcomes)).filter(({ ok }) => ok);
    assert.ok(done.length >= 9 && done.length < 20, `${done.length}`);
  });
});

test("owned stream: truncation drops the extents before, also for the next owner", async () => {
  const stamp = new Stamp(9, { client: { extentTargetBytes: 1_000 } });
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    const placed: Place[] = [];
    for (let i = 0; i < 30; i++) placed.push(unwrap(await stream.append(block(`${i}`.repeat(50)), forever))[0] as Place);
    const keep = (placed[20] as Place).extentId;
    const old = (placed[0] as Place).extentId;
    unwrap(await stream.truncateBefore(keep, { timeoutMs: 5_000 }));
    unwrap(await stream.truncateBefore(keep, { timeoutMs: 5_000 }));
    assert.equal(stream.knows(old), false);
    assert.equal(stream.knows(keep), true);
    const content = await stamp.content("/a", 2);
    assert.ok(content.length < 30 && content.length >= 10);
    assert.equal(content.at(-1), "29".repeat(50));
    const stale = await stream.truncateBefore((placed[29] as Place).extentId, { timeoutMs: 5_000 });
    assert.ok(!stale.ok && stale.failure.reason === "staleOwnerEpoch");
    assert.equal(stream.fenced, true);
  });
});

test("owned stream: extents that were dropped when nobody heard of it are dropped until they are gone", async () => {
  const stamp = new Stamp(9, { client: { extentTargetBytes: 1_000 } });
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    for (let i = 0; i < 30; i++) unwrap(await stream.append(block(`${i}`.repeat(50)), forever));
    const [, second, third] = stream.extents.map(({ extentId }) => extentId);
    const manager = stamp.sim.world("other").transport.client("sm1", StreamManager);
    const listed = async (): Promise<number[] | undefined> => {
      const found = await manager.getStream({ name: "/a" }, { timeoutMs: 1_000 });
      return found.ok ? found.value.extents.map(({ extentId }) => fromWire(extentId)) : undefined;
    };
    assert.deepEqual(
      await listed(),
      stream.extents.map(({ extentId }) => extentId),
    );
    stamp.sim.pause("sm1");
    const dropped = unwrap(await stream.dropExtents(new Set([second as number]), { timeoutMs: 500 }));
    assert.deepEqual(dropped, [second]);
    assert.equal(stream.knows(second as number), false);
    stamp.sim.crash("sm1");
    stamp.sim.restart("sm1");
    await stamp.sim.until(async () => (await listed())?.includes(second as number) === false, 60_000, "it is gone");
    assert.deepEqual(
      await listed(),
      stream.extents.map(({ extentId }) => extentId),
    );
    unwrap(await stream.dropExtents(new Set([third as number]), { timeoutMs: 5_000 }));
    unwrap(await stream.append(block("goes on"), forever));
  });
});

test("owned stream: where it ends is told only when it is known what was dropped", async () => {
  const stamp = new Stamp(9, { client: { extentTargetBytes: 1_000 } });
  await stamp.sim.run(async () => {
    for (const answered of [true, false]) {
      const stream = await stamp.open(`/${answered}`, 1);
      for (let i = 0; i < 30; i++) unwrap(await stream.append(block(`${i}`.repeat(50)), forever));
      const second = stream.extents[1]?.extentId as number;
      if (!answered) stamp.sim.pause("sm1");
      unwrap(await stream.dropExtents(new Set([second]), { timeoutMs: 500 }));
      await stream.close();
      assert.equal(stream.endsAt !== undefined, answered);
    }
  });
});

test("owned stream: one that is cut ends at what is acknowledged, whatever lands behind it; it is not cut while it goes to another extent", async () => {
  const [cutBehind, refusals] = [new Set<string>(), [] as number[]];
  for (let cutAfterMs = 0; cutAfterMs < 60; cutAfterMs += 2) {
    const stamp = new Stamp(12, { client: { extentTargetBytes: 4_000 } });
    await stamp.sim.run(async () => {
      const stream = await stamp.open("/a", 1);
      unwrap(await stream.append(block("first"), forever));
      const names = Array.from({ length: 200 }, (_, i) => `${i} ${"x".repeat(50)}`);
      const appends = names.map((name) => stream.append(block(name), forever));
      await stamp.sim.sleep(cutAfterMs);
      if (!stream.cut()) {
        refusals.push(cutAfterMs);
        assert.equal(stream.endsAt, undefined);
        await stream.steady({ timeoutMs: 5_000 });
        assert.ok(stream.cut());
      }
      stream.abandon();
      const outcomes = await Promise.all(appends);
      const acknowledged = names.filter((_, i) => outcomes[i]?.ok);
      for (const outcome of outcomes) if (!outcome.ok) cutBehind.add(outcome.failure.applied);
      // The appends that were sent land.
      await stamp.sim.sleep(100);
      const end = stream.endsAt;
      assert.ok(end !== undefined);
      const complete = end !== "sealed" && { extentId: toWire(end.extentId), lengthBytes: toWire(end.lengthBytes) };
      const edits = [
        { name: "/a", ownerEpoch: 1n, ...(complete && { complete }) },
        { name: "/b", ownerEpoch: 0n, content: { ownerEpoch: 2n, extents: [{ stream: "/a" }] } },
      ];
      unwrap(await stamp.client().multiModify(edits, { timeoutMs: 5_000 }));
      assert.deepEqual(await stamp.content("/b", 2), ["first", ...acknowledged]);
    });
  }
  assert.deepEqual([...cutBehind].sort(), ["no", "unknown"], "some were on their way, some waited");
  assert.ok(refusals.length > 0, "it went to another extent");
});

test("owned stream: close waits for what is in flight and takes nothing more", async () => {
  const stamp = new Stamp(10);
  await stamp.sim.run(async () => {
    const stream: OwnedStream = await stamp.open("/a", 1);
    const pending = stream.append(block("last"), forever);
    await stream.close();
    assert.equal((await pending).ok, true);
    const later = await stream.append(block("more"), forever);
    assert.ok(!later.ok && later.failure.reason === "stopping" && later.failure.applied === "no");
  });
});

test("owned stream: an append that no node takes is refused by itself; those around it are appended in order to the same extent", async () => {
  const stamp = new Stamp(11, { journalSegmentBytes: 1 << 20 });
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    const before = Array.from({ length: 5 }, (_, i) => stream.append(block(`before ${i}`), forever));
    const large = stream.append([new Uint8Array(3_000_000)], forever);
    const after = Array.from({ length: 5 }, (_, i) => stream.append(block(`after ${i}`), forever));
    const outcome = await large;
    assert.ok(!outcome.ok && outcome.failure.reason === "messageTooLarge" && outcome.failure.applied === "no");
    for (const one of await Promise.all([...before, ...after])) unwrap(one);
    assert.equal(stream.extents.length, 1);
    const texts = ["before", "after"].flatMap((when) => Array.from({ length: 5 }, (_, i) => `${when} ${i}`));
    assert.deepEqual(await stamp.content("/a", 2), texts);
  });
});

test("owned stream: an append that one secondary never takes fails the extent once, and is refused", async () => {
  const appendBytesMax = Object.fromEntries(nodeNames.slice(1).map((name) => [name, 200_000]));
  const stamp = new Stamp(13, { appendBytesMax });
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    const outcome = await stream.append([new Uint8Array(500_000)], forever);
    assert.ok(!outcome.ok && outcome.failure.reason === "messageTooLarge" && outcome.failure.applied === "no");
    unwrap(await stream.append(block("goes on"), forever));
    assert.ok(stream.extents.length <= 2);
    assert.deepEqual(await stamp.content("/a", 2), ["goes on"]);
  });
});

test("owned stream: a primary without room for more keeps its extent, and everything is appended in order once it has room", async () => {
  const stamp = new Stamp(12, { journalQueueBytesMax: 3_000 });
  await stamp.sim.run(async () => {
    const stream = await stamp.open("/a", 1);
    unwrap(await stream.append(block("first"), forever));
    const texts = Array.from({ length: 60 }, (_, i) => `${i} ${"x".repeat(500)}`);
    for (const outcome of await Promise.all(texts.map((text) => stream.append(block(text), forever)))) unwrap(outcome);
    assert.equal(stream.extents.length, 1);
    assert.deepEqual(await stamp.content("/a", 2), ["first", ...texts]);
  });
});
