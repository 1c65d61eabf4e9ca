/** Sources of repairs and decodings with bad chunks, and that hang. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { Coding } from "../testing/coding.ts";
import { reasonOf } from "../testing/harness.ts";
import { stripeBytes } from "./fragment-sources.ts";

test("sources: fragments with a bad chunk each, at different chunks of one stripe, still give every lost fragment and the extent", async () => {
  const coding = new Coding(18, "rs-4-2", 2);
  await coding.run(async () => {
    coding.cluster.givenVersion = 50;
    unwrap(await coding.make());
    const expected = unwrap(await coding.fragment(coding.at(1)));
    for (const [chunk, index] of [1, 2, 4].entries()) coding.rot(index, chunk);
    const others = coding.all().filter(({ index }) => index !== 1);
    unwrap(await coding.repair(coding.at(1, 9, "en-8"), others));
    assert.deepEqual(unwrap(await coding.fragment(coding.at(1, 9, "en-8"))), expected);
    unwrap(await coding.decode("en-7", 10n));
    assert.deepEqual(await coding.raw("en-7"), coding.content);
  });
});

test("sources: a fragment's own good stripes are copied, and only the one with a bad chunk is computed", async () => {
  const coding = new Coding(19, "rs-4-2", 1);
  await coding.run(async () => {
    unwrap(await coding.make());
    const expected = unwrap(await coding.fragment(coding.at(1)));
    assert.equal(coding.fragmentBytes, 2 * stripeBytes);
    coding.rot(1, 1);
    const { bytesRead } = unwrap(await coding.repair(coding.at(1, 9, "en-7"), coding.all()));
    assert.deepEqual(unwrap(await coding.fragment(coding.at(1, 9, "en-7"))), expected);
    assert.equal(Number(bytesRead), (coding.profile.data + 1) * stripeBytes);
  });
});

test("sources: with two fragments lost and three damaged, what the code bears at each place is what counts", async () => {
  const coding = new Coding(19, "lrc-12-2-2", 1);
  await coding.run(async () => {
    unwrap(await coding.make());
    const expected = unwrap(await coding.fragment(coding.at(2)));
    for (const [chunk, index] of [2, 3, 4].entries()) coding.rot(index, chunk);
    const spare = coding.names.at(-1) as string;
    const left = coding.all().filter(({ index }) => ![0, 13].includes(index));
    unwrap(await coding.repair(coding.at(2, 9, spare), left));
    assert.deepEqual(unwrap(await coding.fragment(coding.at(2, 9, spare))), expected);
  });
});

test("sources: with too many bad chunks at one place the repair is refused, and nothing is left of it", async () => {
  const coding = new Coding(20, "rs-4-2", 1);
  await coding.run(async () => {
    unwrap(await coding.make());
    for (const index of [1, 2, 4]) coding.rot(index, 2);
    assert.equal(reasonOf(await coding.repair(coding.at(1, 9, "en-7"), coding.all())), "extentStale");
    assert.equal(unwrap(await coding.held("en-7")).fragments.length, 0);
    assert.deepEqual(
      coding.cluster.sim
        .disk("en-7")
        .paths()
        .filter((path) => path.startsWith("fragments/")),
      [],
    );
  });
});

test("sources, reported: a source that hangs stalls a repair or a decoding until a timeout; here others are asked beside it", async () => {
  for (const profileName of ["rs-4-2", "lrc-12-2-2"]) {
    const coding = new Coding(21, profileName, 2);
    const { cluster } = coding;
    await coding.run(async () => {
      cluster.givenVersion = 50;
      unwrap(await coding.make());
      const expected = unwrap(await coding.fragment(coding.at(0)));
      // A node of the local group, and one of the data fragments that a decoding reads.
      const hung = coding.names[1] as string;
      cluster.sim.pause(hung);
      const [repairer, decoder] = coding.names.slice(-2) as [string, string];
      let startMs = cluster.sim.nowMs;
      unwrap(await coding.repair(coding.at(0, 9, repairer), coding.all().slice(1)));
      assert.ok(cluster.sim.nowMs - startMs < 3_000, `${profileName}: a repair took ${cluster.sim.nowMs - startMs} ms`);
      assert.deepEqual(unwrap(await coding.fragment(coding.at(0, 9, repairer))), expected);
      startMs = cluster.sim.nowMs;
      unwrap(await coding.decode(decoder, 10n));
      assert.ok(cluster.sim.nowMs - startMs < 3_000, `${profileName}: a decoding took ${cluster.sim.nowMs - startMs} ms`);
      assert.deepEqual(await coding.raw(decoder), coding.content);
      cluster.sim.resume(hung);
    });
  }
});
