/** Fragments and replicas of other histories, jobs that meet, and replicas that rot before they are announced. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, type RuleName, refused, unwrap } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import { fragmentBytesOf } from "@stamp/extent";
import { type Handlers, served } from "@stamp/ports";
import { ExtentFragments } from "@stamp/wire";
import { extentPath } from "../disk/extent-files.ts";
import { Coding } from "../testing/coding.ts";
import { reasonOf, stampId } from "../testing/harness.ts";

const timeoutMs = 60_000;

/** A history that was lost with the metadata has left fragment 3 of rs-4-2, version 9, on the last node; now the extent is coded as rs-6-3. */
async function otherHistory(coding: Coding) {
  unwrap(await coding.make("en-1", 3));
  const spare = coding.names.at(-1) as string;
  const target = coding.at(3, 9, spare);
  unwrap(await coding.repair(target, coding.all(3).slice(0, 3).concat(coding.all(3).slice(4))));
  const extent = { ...coding.extent, profile: "rs-6-3" };
  const all = Array.from({ length: 9 }, (_, index) => coding.at(index, 5));
  const diskId = String(coding.cluster.facts("en-1").diskId);
  unwrap(await coding.calls("en-1").makeFragments({ smTerm: 1n, extent, targets: all, stampId, diskId }, { timeoutMs }));
  unwrap(await coding.calls("en-2").verifyFragments({ smTerm: 1n, extent, fragments: all }, { timeoutMs }));
  const sources = all.filter(({ index }) => index !== 3);
  const repair = (version: bigint) =>
    coding.calls(spare).repairFragment({ smTerm: 1n, extent, target: { ...target, version }, sources, stampId }, { timeoutMs });
  return { extent, target, all, spare, repair };
}

test("fragments of another history: one of the same name and another code is not taken for the one that is to be made", async () => {
  const coding = new Coding(11, "rs-4-2", 4);
  await coding.run(async () => {
    const { spare, target, repair, extent } = await otherHistory(coding);
    assert.equal(reasonOf(await repair(9n)), "conflict");
    assert.equal(unwrap(await coding.held(spare)).fragments.length, 1, "what is here is left alone");
    unwrap(await repair(10n));
    const F = fragmentBytesOf(coding.content.length, (profileOf("rs-6-3") as Profile).data);
    const name = { extentId: BigInt(coding.id), index: 3, offsetBytes: 0n, lengthBytes: 1_000 };
    const read = unwrap(await coding.calls(spare).readFragment({ ...name, version: 10n }, { timeoutMs }));
    assert.deepEqual(read.payload, coding.content.subarray(3 * F, 3 * F + 1_000));
    // A read that names the code, length and content of the fragment does not find the old one; a read of an earlier release, without them, does.
    const { profile, sealedLengthBytes, checksum } = extent;
    const old = { ...name, version: target.version };
    for (const wanted of [{ profile }, { sealedLengthBytes: sealedLengthBytes + 1n }, { checksum: checksum ^ 1 }, { checksum: 0 }])
      assert.equal(reasonOf(await coding.calls(spare).readFragment({ ...old, ...wanted }, { timeoutMs })), "unknownExtent");
    unwrap(await coding.calls(spare).readFragment({ ...old, profile: "rs-4-2", sealedLengthBytes, checksum }, { timeoutMs }));
    unwrap(await coding.calls(spare).readFragment(old, { timeoutMs }));
  });
});

test("fragments of another history: one of another code is no source of a repair, of a decoding or of a verification", async () => {
  const coding = new Coding(12, "rs-4-2", 4);
  await coding.run(async () => {
    coding.cluster.givenVersion = 50;
    const { extent, target, all, spare } = await otherHistory(coding);
    const stale = all.with(3, target);
    assert.equal(
      reasonOf(await coding.calls("en-2").verifyFragments({ smTerm: 1n, extent, fragments: stale }, { timeoutMs })),
      "unknownExtent",
    );
    const at = coding.at(0, 20, spare);
    const made = { smTerm: 1n, extent, target: at, sources: stale.slice(1), stampId };
    unwrap(await coding.calls(spare).repairFragment(made, { timeoutMs }));
    const name = { extentId: BigInt(coding.id), index: 0, offsetBytes: 0n, lengthBytes: 1_000 };
    const read = unwrap(await coding.calls(spare).readFragment({ ...name, version: 20n }, { timeoutMs }));
    assert.deepEqual(read.payload, coding.content.subarray(0, 1_000));
    const diskId = String(coding.cluster.facts(spare).diskId);
    const common = { smTerm: 1n, extentId: BigInt(coding.id), version: 30n, ownerEpoch: 1n, extent, stampId, diskId };
    unwrap(await coding.calls(spare).decodeExtent({ ...common, fragments: stale }, { timeoutMs }));
    assert.deepEqual(await coding.raw(spare), coding.content);
  });
});

test("fragments of another history, rule fragmentsOfTheirCode: without it a repair computes wrong bytes from a fragment of another code", async () => {
  const coding = new Coding(12, "rs-4-2", 4, { scrubBytesPerSecond: 0 }, ["fragmentsOfTheirCode"]);
  await coding.run(async () => {
    const { extent, target, all, spare } = await otherHistory(coding);
    const sources = all.with(3, target).slice(1);
    unwrap(
      await coding.calls(spare).repairFragment({ smTerm: 1n, extent, target: coding.at(0, 20, spare), sources, stampId }, { timeoutMs }),
    );
    const name = { extentId: BigInt(coding.id), index: 0, offsetBytes: 0n, lengthBytes: 1_000 };
    const read = unwrap(await coding.calls(spare).readFragment({ ...name, version: 20n }, { timeoutMs }));
    assert.notDeepEqual(read.payload, coding.content.subarray(0, 1_000));
  });
});

test("repair of a fragment: bytes that change on their way from a source are not taken", async () => {
  const coding = new Coding(14, "rs-4-2", 1);
  const { cluster } = coding;
  await coding.run(async () => {
    unwrap(await coding.make());
    const expected = unwrap(await coding.fragment(coding.at(0)));
    // A connection to the node of fragment 1 that flips a bit of every answer.
    let flipped = 0;
    const no = async () => refused("unavailable", "notReady", "not in this test");
    const handlers = Object.fromEntries(Object.keys(ExtentFragments.method).map((name) => [name, no]));
    const readFragment: Handlers<typeof ExtentFragments>["readFragment"] = async (request) => {
      const answer = await coding.calls("en-2").readFragment(request, { timeoutMs });
      if (!answer.ok) return answer;
      const payload = answer.value.payload.slice();
      payload[7] = (payload[7] as number) ^ 0x10;
      flipped += 1;
      return ok({ ...answer.value, payload });
    };
    const noise = served(ExtentFragments, { ...handlers, readFragment } as unknown as Handlers<typeof ExtentFragments>);
    await cluster.sim.world("noise").transport.serve("noise", [noise]);
    const sources = [{ ...coding.at(1), address: "noise" }, ...coding.all().slice(2)];
    unwrap(await coding.repair(coding.at(0, 9, "en-7"), sources));
    assert.ok(flipped > 0);
    assert.deepEqual(unwrap(await coding.fragment(coding.at(0, 9, "en-7"))), expected);
    // Nothing else determines the fragment: it is not made.
    assert.equal(reasonOf(await coding.repair(coding.at(0, 11, "en-7"), sources.slice(0, 4))), "extentStale");
  });
});

test("repair of a fragment, asked again: what was made is answered if it is still good, and refused if it has rotted", async () => {
  const coding = new Coding(13, "rs-4-2", 1);
  await coding.run(async () => {
    unwrap(await coding.make());
    const target = coding.at(0, 9, "en-7");
    const sources = coding.all().slice(1);
    unwrap(await coding.repair(target, sources));
    assert.equal(Number(unwrap(await coding.repair(target, [])).bytesRead), 0);
    const [path] = coding.cluster.sim
      .disk("en-7")
      .paths()
      .filter((each) => each.endsWith(".fragment")) as [string];
    coding.cluster.sim.disk("en-7").corrupt(path, 8_192 + 70_000);
    assert.equal(reasonOf(await coding.repair(target, sources)), "conflict");
  });
});

for (const off of [[], ["copiesReadBeforeTold"]] as RuleName[][]) {
  test(`decoding onto a node with a replica that has rotted: ${off.length === 0 ? "it is read, and made anew" : "without the rule it is announced"}`, async () => {
    const coding = new Coding(19, "rs-4-2", 2, { scrubBytesPerSecond: 0 }, off);
    const { cluster } = coding;
    await coding.run(async () => {
      cluster.givenVersion = 50;
      unwrap(await coding.make());
      await cluster.sim.sleep(3_000);
      for (const name of ["en-1", "en-2"]) cluster.sim.disk(name).corrupt(extentPath(coding.id as never), 200_000);
      for (const name of ["en-1", "en-2", "en-3"]) {
        assert.equal(unwrap(await coding.decode(name, 10n)).checksum, coding.checksum);
        assert.equal((await cluster.replica(name, coding.id)).version, 10n);
        const request = { extentId: BigInt(coding.id), offsetBytes: 150_000n, lengthBytes: 100_000 };
        const read = await cluster.node(name).readRaw(request, { timeoutMs });
        const isRight = read.ok && Buffer.compare(read.value.payload, coding.content.subarray(150_000, 250_000)) === 0;
        assert.equal(isRight, off.length === 0 || name === "en-3", name);
      }
    });
  });
}

test("decoding: a later attempt does not join the job of an earlier one; its replica has its own version, which a late deletion leaves", async () => {
  const coding = new Coding(17, "rs-4-2", 2);
  const { cluster } = coding;
  await coding.run(async () => {
    cluster.givenVersion = 50;
    unwrap(await coding.make());
    const first = coding.decode("en-7", 10n);
    const again = coding.decode("en-7", 10n);
    await cluster.sim.sleep(1);
    const [second, third] = await Promise.all([coding.decode("en-7", 12n), coding.decode("en-7", 12n)]);
    assert.deepEqual([second, third, await first, await again].map(reasonOf), ["ok", "ok", "ok", "ok"]);
    assert.equal((await cluster.replica("en-7", coding.id)).version, 12n);
    const late = { smTerm: 1n, extentId: BigInt(coding.id), version: 11n, diskId: String(cluster.facts("en-7").diskId) };
    assert.equal(reasonOf(await cluster.node("en-7").deleteExtent(late, { timeoutMs })), "conflict");
    assert.deepEqual(await coding.raw("en-7"), coding.content);
    // An earlier attempt that comes late lowers nothing.
    unwrap(await coding.decode("en-7", 10n));
    assert.equal((await cluster.replica("en-7", coding.id)).version, 12n);
  });
});

test("fragments compared: one whose content is not the recorded one is no source, gives nothing, and counts as damaged", async () => {
  const coding = new Coding(19, "rs-4-2", 2);
  await coding.run(async () => {
    unwrap(await coding.make("en-1", 3));
    const named = { smTerm: 1n, extent: coding.extent, fragments: coding.all(3) };
    const { fragmentChecksums } = unwrap(await coding.calls("en-2").verifyFragments(named, { timeoutMs }));
    assert.equal(fragmentChecksums.length, 6);
    const extent = { ...coding.extent, fragmentChecksums };
    const spare = coding.names.at(-1) as string;
    const wrong = { ...coding.extent, fragmentChecksums: fragmentChecksums.with(0, (fragmentChecksums[0] as number) ^ 1) };
    const target = coding.at(0, 9, spare);
    const request = { smTerm: 1n, target, sources: coding.all(3).slice(1), stampId };
    assert.equal(reasonOf(await coding.calls(spare).repairFragment({ ...request, extent: wrong }, { timeoutMs })), "extentStale");
    assert.equal(unwrap(await coding.held(spare)).fragments.length, 0, "nothing is left of it");
    unwrap(await coding.calls(spare).repairFragment({ ...request, extent }, { timeoutMs }));
    assert.equal(reasonOf(await coding.calls(spare).repairFragment({ ...request, extent: wrong }, { timeoutMs })), "conflict");
    const few = { ...request, extent: { ...extent, fragmentChecksums: [1, 2] } };
    assert.equal(reasonOf(await coding.calls(spare).repairFragment(few, { timeoutMs })), "badRequest");
    // Fragment 1 was made wrong by a release that compared nothing: the same file with another recorded checksum.
    const other = { ...coding.extent, fragmentChecksums: fragmentChecksums.with(1, (fragmentChecksums[1] as number) ^ 1) };
    const again = { ...request, extent: other, target: coding.at(0, 11, spare) };
    unwrap(await coding.calls(spare).repairFragment(again, { timeoutMs }));
    const holder = coding.at(1, 3).address;
    const [held] = unwrap(await coding.held(holder)).fragments;
    assert.match(held?.damage ?? "", /recorded when the extent was coded/);
    assert.equal(held?.chunksReadable, false);
  });
});
