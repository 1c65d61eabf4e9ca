/** The policy of coding: the code it chooses, the extents it takes, and from when on an extent is old. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, extentVersion, ownerEpoch } from "@stamp/base";
import { type Profile, profileNames, profileOf } from "@stamp/erasure";
import fc from "fast-check";
import type { ExtentRecord } from "../records.ts";
import { type CodingPolicy, chooseProfile, keepsReplicas, whyNotCoded } from "./coding-policy.ts";
import { ExtentAges } from "./extent-ages.ts";
import { placeFragments } from "./place-fragments.ts";

const alone = (count: number): string[] => Array.from({ length: count }, (_, i) => `n${i}`);
const racks = (...counts: number[]): string[] => counts.flatMap((count, rack) => Array<string>(count).fill(`r${rack}`));
const chosen = (profile: CodingPolicy["profile"], domains: string[]): string => {
  const choice = chooseProfile({ profile }, domains);
  return typeof choice === "string" ? choice : choice.name;
};

test("coding policy: auto takes the widest code that the fault domains carry with one to spare", () => {
  const by = (count: number): string => chosen("auto", alone(count));
  assert.match(by(6), /auto needs 7 extent nodes, 6 serve/);
  assert.deepEqual([7, 9, 10, 14, 15, 16, 17, 40].map(by), [
    ...["rs-4-2", "rs-4-2", "rs-6-3", "rs-6-3", "rs-10-4", "rs-10-4", "lrc-12-2-2", "lrc-12-2-2"],
  ]);
  assert.match(chosen("auto", racks(4, 4, 4)), /rs-4-2 needs 6 .* 12 nodes in 3 fault domains serve; auto keeps one/);
  assert.equal(chosen("auto", racks(4, 4, 4, 4)), "rs-6-3", "three racks carry nine fragments, three each");
  assert.equal(chosen("auto", racks(2, 2, 2, 2)), "rs-4-2");
});

test("coding policy: a code that is named is taken if it can be placed; off takes none", () => {
  assert.equal(chosen("rs-4-2", alone(6)), "rs-4-2");
  assert.match(chosen("rs-4-2", alone(5)), /needs 6 extent nodes/);
  assert.equal(chosen("lrc-12-2-2", alone(16)), "lrc-12-2-2");
  assert.match(chosen("rs-4-2", racks(20, 1)), /21 nodes in 2 fault domains/);
  assert.equal(chosen("off", alone(40)), "erasureCoding is off");
});

test("coding policy: what is chosen can be placed, by auto also without any one domain", () => {
  const clusters = fc.record({
    profile: fc.constantFrom<CodingPolicy["profile"]>("auto", ...profileNames),
    counts: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 18 }),
  });
  let placed = 0;
  fc.assert(
    fc.property(clusters, ({ profile, counts }) => {
      const domains = racks(...counts);
      const choice = chooseProfile({ profile }, domains);
      const without = profile === "auto" ? counts.map((_, out) => counts.toSpliced(out, 1)) : [counts];
      if (typeof choice === "string") {
        const narrowest = profileOf(profile === "auto" ? "rs-4-2" : profile) as Profile;
        const few = profile === "auto" && domains.length < 7;
        assert.ok(few || without.some((each) => !fits(narrowest, each)), `${profile} on ${counts.join()}: ${choice}`);
        return;
      }
      placed += 1;
      for (const each of without) assert.ok(fits(choice, each), `${choice.name} on ${each.join()}`);
    }),
  );
  assert.ok(placed > 10);
});

function fits(code: Profile, counts: number[]): boolean {
  const nodes = racks(...counts).map((faultDomain, i) => ({
    ...{ nodeId: `n${i}`, diskId: `d${i}`, faultDomain },
    ...{ freeBytes: 1, totalBytes: 1, openReplicas: 0 },
  }));
  return typeof placeFragments(code, nodes, () => 0.5) !== "string";
}

const whole: ExtentRecord = {
  id: extentId(9),
  phase: "sealed",
  version: extentVersion(2),
  ownerEpoch: ownerEpoch(1),
  stream: "/ps/blob-1/blob-data",
  replicas: ["a", "b", "c"].map((nodeId) => ({ nodeId, diskId: "d", complete: true })),
  sealedLengthBytes: 1_000,
  checksum: 5,
  removed: [],
};

test("coding policy: a whole old extent is taken; any other stays, with the reason", () => {
  const policy: CodingPolicy = { profile: "auto", afterSeconds: 60, minBytes: 1_000 };
  const facts = { copies: 3, isOld: true, isWhole: true };
  const why = (change: Partial<ExtentRecord>, more: Partial<typeof facts> = {}): string | undefined =>
    whyNotCoded({ ...whole, ...change }, policy, () => ({ ...facts, ...more }));
  assert.equal(why({}), undefined);
  assert.match(why({ stream: "/ps/blob-1/commit-log" }) ?? "", /commit logs and metadata/);
  assert.match(why({ sealedLengthBytes: 999 }) ?? "", /shorter than minBytes \(1000\)/);
  assert.match(why({ phase: "open" }) ?? "", /not sealed/);
  assert.match(why({ checksum: undefined } as never) ?? "", /checksum/);
  assert.match(why({}, { isOld: false }) ?? "", /afterSeconds \(60\)/);
  assert.match(why({}, { isWhole: false }) ?? "", /replica is missing/);
  assert.match(why({ replicas: whole.replicas.slice(1) }) ?? "", /replica is missing/);
  assert.match(why({ repair: { nodeId: "d", diskId: "d" } }) ?? "", /made anew/);
  assert.ok(["/pm/map/row-data", "/ps/x/metadata"].every(keepsReplicas));
  assert.ok(!["/ps/x/row-data", "/by-hand", "/metadata-of-mine"].some(keepsReplicas));
});

test("ages of extents: an extent is old once it was sealed at a look that is as old; a bounded number of looks is kept", () => {
  const ages = new ExtentAges(1_000);
  const [first, second, third] = [extentId(1), extentId(2), extentId(3)] as const;
  assert.ok(!ages.isOld(first, 5_000), "nothing was seen");
  ages.looked(5_000, 2, [second]);
  assert.ok(!ages.isOld(first, 5_999));
  assert.ok(ages.isOld(first, 6_000));
  assert.ok(!ages.isOld(second, 6_000), "it was open");
  assert.ok(!ages.isOld(third, 6_000), "it was not there");
  for (let nowMs = 6_000; nowMs < 6_990; nowMs += 10) ages.looked(nowMs, 3, []);
  assert.ok(!ages.isOld(second, 6_999));
  ages.looked(7_100, 3, []);
  assert.ok(ages.isOld(second, 7_100) && ages.isOld(third, 7_100));
  ages.renew(third);
  assert.ok(!ages.isOld(third, 7_100));
  for (let nowMs = 7_200; nowMs <= 8_300; nowMs += 100) ages.looked(nowMs, 3, []);
  assert.ok(ages.isOld(third, 8_300), "its age began at the first look after that");
  const atOnce = new ExtentAges(0);
  atOnce.looked(5, 3, []);
  assert.ok(atOnce.isOld(third, 5));
});
