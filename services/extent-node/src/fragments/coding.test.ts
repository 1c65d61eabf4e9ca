/** A sealed extent becomes fragments on other nodes: made, verified, repaired, under damage, crashes and makers that meet. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { fragmentContentOffset } from "@stamp/extent";
import { extentPath } from "../disk/extent-files.ts";
import { Coding } from "../testing/coding.ts";
import { pattern, reasonOf, stampId } from "../testing/harness.ts";
import { fragmentPath } from "./fragment-paths.ts";

const timeoutMs = 60_000;

for (const profileName of ["rs-4-2", "lrc-12-2-2"]) {
  test(`coding ${profileName}: fragments are made and verified; each lost one is made again from as few as the code needs`, async () => {
    const coding = new Coding(11, profileName);
    const { profile } = coding;
    await coding.run(async () => {
      unwrap(await coding.make());
      assert.equal(await coding.heldCount(), profile.fragments);
      for (let index = 0; index < profile.data; index++)
        assert.deepEqual(unwrap(await coding.fragment(coding.at(index))), coding.expected(index), `fragment ${index}`);
      unwrap(await coding.verify());
      const spare = coding.names.at(-1) as string;
      for (let index = 0; index < profile.fragments; index++) {
        const lost = unwrap(await coding.fragment(coding.at(index)));
        const others = coding.all().filter((each) => each.index !== index);
        const target = coding.at(index, 4 + index, spare);
        const { bytesRead } = unwrap(await coding.repair(target, others));
        const group = profile.groups.find((each) => each.includes(index));
        assert.equal(
          Number(bytesRead),
          (group === undefined ? profile.data : group.length - 1) * coding.fragmentBytes,
          `fragment ${index}`,
        );
        assert.deepEqual(unwrap(await coding.fragment(target)), lost);
        assert.equal(Number(unwrap(await coding.repair(target, [])).bytesRead), 0, "asked again, it is there");
        unwrap(
          await coding
            .calls(spare)
            .deleteFragment(
              { smTerm: 1n, extentId: BigInt(coding.id), fragmentVersion: target.version, diskId: target.diskId },
              { timeoutMs },
            ),
        );
        assert.equal(reasonOf(await coding.fragment(target)), "unknownExtent");
      }
    });
  });
}

test("coding, rule makersMeasureReplicas: without it a rotten replica becomes fragments, which the verification finds", async () => {
  const coding = new Coding(12, "rs-4-2", 1, { scrubBytesPerSecond: 0 }, ["makersMeasureReplicas"]);
  await coding.run(async () => {
    coding.cluster.sim.disk("en-1").corrupt(extentPath(coding.id as never), 8_192 + 777_777);
    unwrap(await coding.make("en-1"));
    assert.equal(await coding.heldCount(), 6);
    assert.equal(reasonOf(await coding.verify()), "damaged");
  });
});

test("coding: a replica that rots is found while fragments are made; none is finished, and another replica makes them", async () => {
  const coding = new Coding(12, "rs-4-2");
  const { cluster } = coding;
  await coding.run(async () => {
    cluster.sim.disk("en-1").corrupt(extentPath(coding.id as never), 8_192 + 777_777);
    assert.equal(reasonOf(await coding.make("en-1")), "damaged");
    assert.equal(await coding.heldCount(), 0);
    assert.equal((await cluster.replica("en-1", coding.id)).state, 4, "the replica is known to be damaged");
    unwrap(await coding.make("en-2"));
    unwrap(await coding.verify());
  });
});

test("coding: verification finds a fragment that is intact on its disk and not what the others give", async () => {
  for (const index of [1, 5]) {
    const coding = new Coding(13, "rs-4-2");
    const { cluster } = coding;
    await coding.run(async () => {
      unwrap(await coding.make());
      const at = coding.at(index, 9, "en-7");
      const payload = pattern(coding.fragmentBytes, 99).subarray(0, coding.fragmentBytes);
      const checksum = cluster.tester.digest.crc32c(payload);
      const request = { smTerm: 1n, extent: coding.extent, index, version: at.version, stampId, diskId: at.diskId, maker: "bad" };
      unwrap(
        await coding
          .calls("en-7")
          .writeFragment({ ...request, offsetBytes: 0n, payloadChecksum: checksum, last: true, payload }, { timeoutMs }),
      );
      const fragments = coding.all().map((each) => (each.index === index ? at : each));
      assert.equal(reasonOf(await coding.verify("en-2", fragments)), "damaged");
      unwrap(await coding.verify());
      assert.equal(reasonOf(await coding.verify("en-2", fragments.slice(1))), "badRequest");
    });
  }
});

test("coding: with some of the fragments the verification computes the others; those of another extent and too few are refused", async () => {
  for (const profileName of ["rs-4-2", "lrc-12-2-2"]) {
    const coding = new Coding(18, profileName);
    const { cluster, profile } = coding;
    await coding.run(async () => {
      unwrap(await coding.make());
      const verify = (fragments: ReturnType<typeof coding.all>, extent = coding.extent) =>
        coding.calls("en-2").verifyFragments({ smTerm: BigInt(cluster.smTerm), extent, fragments, partial: true }, { timeoutMs });
      const all = coding.all();
      for (let from = 0; from < profile.fragments; from++) {
        const lost = new Set([from, (from + 1) % profile.fragments]);
        unwrap(await verify(all.filter(({ index }) => !lost.has(index))));
      }
      unwrap(await verify(all));
      const { losses, data } = profile;
      // A node gives no byte of a fragment whose head says another checksum.
      assert.equal(reasonOf(await verify(all.slice(losses), { ...coding.extent, checksum: coding.checksum ^ 1 })), "unknownExtent");
      assert.equal(reasonOf(await verify(all.slice(0, data - 1))), "badRequest");
      const { fragments } = unwrap(await coding.calls("en-1").listFragments({ withHeads: true }, { timeoutMs }));
      const { checksum, sealedLengthBytes } = coding.extent;
      assert.deepEqual(
        fragments.map((held) => [held.profile, held.sealedLengthBytes, held.checksum, held.damage]),
        [[profileName, sealedLengthBytes, checksum, ""]],
      );
      const plain = unwrap(await coding.calls("en-1").listFragments({}, { timeoutMs })).fragments[0];
      assert.deepEqual([plain?.profile, plain?.sealedLengthBytes, plain?.checksum], ["", 0n, 0]);
    });
  }
});

test("coding: sources that are dead, damaged or gone are left, as long as the others are enough", async () => {
  const coding = new Coding(14, "rs-6-3");
  const { cluster } = coding;
  await coding.run(async () => {
    unwrap(await coding.make());
    const expected = unwrap(await coding.fragment(coding.at(0)));
    cluster.sim.crash("en-2", { stayDown: true });
    const path = fragmentPath({ extentId: coding.id as never, version: 3 as never, index: 2 });
    // In the second stripe, so that the source is left on the way.
    cluster.sim.disk("en-3").corrupt(path, fragmentContentOffset(coding.fragmentBytes) + coding.fragmentBytes - 5);
    const spare = coding.at(0, 4, "en-10");
    const others = [coding.at(1, 3, "en-2"), ...coding.all().filter(({ index }) => index > 1)];
    unwrap(await coding.repair(spare, others));
    assert.deepEqual(unwrap(await coding.fragment(spare)), expected);
    const held = unwrap(await coding.held("en-3")).fragments;
    assert.match(held[0]?.damage ?? "", /chunk/, "what a repair has found is told");
    assert.equal(held[0]?.chunksReadable, true);
    // Fragments 0 to 2 are lost: six are left, and a seventh loss is one too many.
    const few = others.filter(({ index }) => index !== 8);
    assert.equal(reasonOf(await coding.repair(coding.at(0, 5, "en-10"), few)), "extentStale");
    assert.equal(unwrap(await coding.held("en-10")).fragments.length, 1, "nothing is left of a repair that failed");
  });
});

test("coding: a maker that dies leaves nothing finished; the next attempt goes on beside what is left of it", async () => {
  for (let seed = 20; seed < 26; seed++) {
    const coding = new Coding(seed, "rs-4-2");
    const { cluster } = coding;
    await coding.run(async () => {
      const made = coding.make("en-1");
      await cluster.sim.sleep(cluster.sim.prng.below(30));
      cluster.sim.crash("en-1", { unsynced: "lost" });
      await made;
      cluster.sim.restart("en-1");
      await cluster.ready("en-1");
      unwrap(await coding.make("en-2", 5));
      unwrap(await coding.verify("en-3", coding.all(5)));
      for (const name of coding.names.slice(0, 6)) {
        const request = { smTerm: 1n, extentId: BigInt(coding.id), fragmentVersion: 3n, diskId: String(cluster.facts(name).diskId) };
        unwrap(await coding.calls(name).deleteFragment(request, { timeoutMs }));
        assert.deepEqual(
          cluster.sim
            .disk(name)
            .paths()
            .filter((path) => path.startsWith("fragments/")).length,
          1,
        );
      }
      unwrap(await coding.verify("en-3", coding.all(5)));
    });
  }
});

test("coding: two makers of one attempt at once leave fragments that verify, or are refused; never a mixture", async () => {
  let agreed = 0;
  for (let seed = 30; seed < 36; seed++) {
    const coding = new Coding(seed, "rs-4-2");
    await coding.run(async () => {
      const answers = await Promise.all([
        coding.make("en-1"),
        coding.cluster.sim.sleep(coding.cluster.sim.prng.below(20)).then(() => coding.make("en-2")),
      ]);
      const complete = (await coding.heldCount()) === coding.profile.fragments;
      assert.ok(complete || answers.every((each) => !each.ok), "who says that all is made is right");
      if (complete) unwrap(await coding.verify());
      if (complete) agreed += 1;
    });
  }
  assert.ok(agreed > 0);
});

test("coding: commands of a stale term, for another disk, of another stamp, or with impossible numbers are refused", async () => {
  const coding = new Coding(15, "rs-4-2");
  const { cluster } = coding;
  await coding.run(async () => {
    cluster.smTerm = 3;
    unwrap(await coding.make("en-1", 3, 3));
    for (const name of coding.names) await cluster.fence(name, coding.id, 3);
    const target = coding.at(0, 4, "en-7");
    const sources = coding.all().slice(1);
    const call = coding.calls("en-7");
    const common = { extent: coding.extent, stampId };
    const old = { smTerm: 2n };
    assert.equal(reasonOf(await call.repairFragment({ ...common, ...old, target, sources }, { timeoutMs })), "staleTerm");
    assert.equal(reasonOf(await coding.make("en-1", 4, 2)), "staleTerm");
    assert.equal(reasonOf(await call.verifyFragments({ ...common, ...old, fragments: coding.all() }, { timeoutMs })), "staleTerm");
    const remove = { extentId: BigInt(coding.id), fragmentVersion: 3n, diskId: String(cluster.facts("en-2").diskId) };
    assert.equal(reasonOf(await coding.calls("en-2").deleteFragment({ ...remove, ...old }, { timeoutMs })), "staleTerm");
    const now = { smTerm: 3n };
    assert.equal(reasonOf(await coding.calls("en-3").deleteFragment({ ...remove, ...now }, { timeoutMs })), "wrongDisk");
    assert.equal(
      reasonOf(await call.repairFragment({ ...common, ...now, target: coding.at(0, 4, "en-1"), sources }, { timeoutMs })),
      "wrongDisk",
    );
    const foreign = { ...common, ...now, stampId: "another", target, sources };
    assert.equal(reasonOf(await call.repairFragment(foreign, { timeoutMs })), "wrongStamp");
    for (const extent of [
      { ...coding.extent, profile: "rs-1-1" },
      { ...coding.extent, sealedLengthBytes: 0n },
      { ...coding.extent, sealedLengthBytes: BigInt(Number.MAX_SAFE_INTEGER) },
      { ...coding.extent, extentId: 2n ** 63n },
    ])
      assert.equal(reasonOf(await call.repairFragment({ ...common, ...now, extent, target, sources }, { timeoutMs })), "badRequest");
    assert.equal(
      reasonOf(await call.repairFragment({ ...common, ...now, target, sources: [...sources, ...sources] }, { timeoutMs })),
      "badRequest",
    );
    assert.equal(unwrap(await coding.held("en-2")).fragments.length, 1);
  });
});

test("coding: the scrub reads fragments as well, finds a flipped byte, and says so in the status and in the report's number", async () => {
  const coding = new Coding(16, "rs-4-2", 1, { scrubPauseMs: 1_000 });
  const { cluster } = coding;
  const scrubOf = (name: string) =>
    cluster.facts(name).scrub as {
      pass: number;
      findings: number;
      recent: readonly { extentId: number; why: string }[];
      finished?: { bytes: number };
    };
  await coding.run(async () => {
    unwrap(await coding.make());
    await cluster.sim.until(
      () => (scrubOf("en-5").finished?.bytes ?? 0) >= coding.fragmentBytes,
      60_000,
      "a node without a replica scrubs",
    );
    assert.equal(scrubOf("en-5").findings, 0);
    const path = fragmentPath({ extentId: coding.id as never, version: 3 as never, index: 4 });
    cluster.sim.disk("en-5").corrupt(path, fragmentContentOffset(coding.fragmentBytes) + 70_000);
    await cluster.sim.until(() => scrubOf("en-5").recent.length > 0, 60_000, "the scrub finds it");
    assert.match(scrubOf("en-5").recent[0]?.why ?? "", /chunk 1 is not what was written/);
    assert.equal(scrubOf("en-5").recent[0]?.extentId, coding.id);
    assert.deepEqual([cluster.facts("en-5").fragments, cluster.facts("en-5").damagedFragments], [1, 1]);
    const report = unwrap(await cluster.node("en-5").getNodeReport({ smTerm: 1n }, { timeoutMs }));
    assert.equal(report.damagedFragments, 1);
  });
});

test("coding: a replica is made of the fragments, lost and damaged ones computed; with too few nothing is left of it", async () => {
  const coding = new Coding(17, "rs-4-2", 2);
  const { cluster } = coding;
  await coding.run(async () => {
    unwrap(await coding.make());
    assert.equal(unwrap(await coding.decode("en-7", 4n, coding.all())).checksum, coding.checksum);
    assert.deepEqual(await coding.raw("en-7"), coding.content);
    const path = fragmentPath({ extentId: coding.id as never, version: 3 as never, index: 1 });
    cluster.sim.disk("en-2").corrupt(path, fragmentContentOffset(coding.fragmentBytes) + 300_000);
    const few = coding.all().filter(({ index }) => index !== 3);
    assert.equal(unwrap(await coding.decode("en-8", 4n, few)).checksum, coding.checksum);
    assert.deepEqual(await coding.raw("en-8"), coding.content);
    assert.equal(reasonOf(await coding.decode("en-6", 4n, few.slice(1))), "extentStale");
    assert.equal(reasonOf(await cluster.node("en-6").getExtentReplica({ extentId: BigInt(coding.id) }, { timeoutMs })), "unknownExtent");
    assert.equal(reasonOf(await coding.decode("en-6", 4n, few, coding.id + 1)), "badRequest");
    assert.equal(reasonOf(await coding.decode("en-6", 2n ** 40n, few)), "badRequest", "a version that was never given");
  });
});
