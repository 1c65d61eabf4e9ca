/** Texts about erasure coding for people. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  CodingStatusSchema,
  ExtentInfoSchema,
  ExtentState,
  ListStrayFragmentsResponseSchema,
  PlannedExtentSchema,
  RepairStatusSchema,
} from "@stamp/wire";
import { fragmentLines, repairText } from "../nodes/node-commands.ts";
import { extentTable } from "../status/status.ts";
import { codingText, planText } from "./coding-text.ts";
import { straysText } from "./strays-command.ts";

test("coding status for people: the policy, what is saved, what waits, and why the others stay replicas", () => {
  const status = create(CodingStatusSchema, {
    ...{ policy: "auto", profile: "rs-4-2", afterSeconds: 3_600n, minBytes: 16_777_216n },
    ...{ codedExtents: 2n, codedBytes: 2n << 20n, fragmentBytes: 3n << 20n, savedBytes: 3n << 20n },
    ...{ extentsWaiting: 1n, bytesWaiting: 1n << 20n, codingsRunning: 1, etaMs: 1_500n },
    ...{ decodingsRunning: 2, decodingsWaiting: 40n, decodingBytesWaiting: 40n << 20n },
    ...{ extentsDone: 2n, bytesDone: 2n << 20n },
    reasons: [{ why: "it is open", extents: 7n, bytes: 0n }],
  });
  const text = codingText(status);
  for (const part of [
    /^extents become rs-4-2, by auto, 3600 s after they were seen sealed, from 16 MiB on$/m,
    /^coded: 2 extents, 2\.0 MiB, in 3\.0 MiB of fragments; 3\.0 MiB saved$/m,
    /^waiting: 1 extent, 1\.0 MiB; 1 being coded, about 2 s left$/m,
    /^waiting to be decoded: 40 extents, 40 MiB; 2 being decoded$/m,
    /^done since this stream manager leads: 2 extents, 2\.0 MiB$/m,
    /^7 +0 B +it is open$/m,
  ])
    assert.match(text, part);
  assert.doesNotMatch(text, /PAUSED|rest|further loss|no record explains/);
});

test("coding status for people: why nothing is coded, a pause, failures, and lost fragments", () => {
  const text = codingText(
    create(CodingStatusSchema, {
      ...{ policy: "off", whyNone: "erasureCoding is off", failing: 1n, failures: ["node n1 can't be reached"], strays: 2n },
      pause: { note: "Ada: disks", wallMs: 1_764_000_000_000n },
      lossesLeft: [
        { losses: -1, extents: 1n },
        { losses: 1, extents: 2n },
      ],
    }),
  );
  for (const part of [
    /^no extent is coded: erasureCoding is off$/m,
    /^PAUSED since 2025-11-24T16:00:00\.000Z: Ada: disks \(go on: \.\/stamp coding resume\)$/m,
    /^no extent is stored as fragments$/m,
    /^1 extent rests after an attempt that was taken back: node n1 can't be reached$/m,
    /^1 coded extent with lost fragments MISS MORE/m,
    /^2 coded extents with lost fragments bear 1 further loss$/m,
    /^2 fragments on nodes/m,
  ])
    assert.match(text, part);
});

test("coding plan for people: each extent with its reason, and where the next page begins", () => {
  const planned = [
    create(PlannedExtentSchema, { extentId: 7n, stream: "/ps/blob-1/blob-data", sealedLengthBytes: 1n << 20n }),
    create(PlannedExtentSchema, { extentId: 9n, stream: "/ps/blob-1/commit-log", sealedLengthBytes: 5n, why: "commit logs stay" }),
  ];
  const text = planText(planned, true);
  assert.match(text, /^7 +\/ps\/blob-1\/blob-data +1\.0 MiB +will be coded$/m);
  assert.match(text, /^9 +\/ps\/blob-1\/commit-log +5 B +commit logs stay$/m);
  assert.match(text, /--after 9$/);
  assert.match(planText([], false), /every sealed extent is coded/);
});

test("an extent and repairs for people: fragments are counted, and so are coded extents that miss some", () => {
  const coded = create(ExtentInfoSchema, {
    location: { extentId: 7n, sealedLengthBytes: 1n << 20n },
    ...{ state: ExtentState.SEALED, coded: { profile: "rs-4-2" }, fragmentNodeIds: ["a", "b", "c"], intactFragments: 2, attempt: "repair" },
  });
  assert.match(extentTable({ extents: [coded] }), /rs-4-2: 2 of 3 \(repair\) +a b c$/m);
  const replicated = create(ExtentInfoSchema, { state: ExtentState.SEALED, nodeIds: ["a", "b"], intactCopies: 1 });
  assert.match(extentTable({ extents: [replicated] }), / 1 of 2 +a b$/m);
  const text = repairText(
    create(RepairStatusSchema, { fragmentsWaiting: 1n, fragmentsEndangered: 2n, fragmentsInGrace: 3n, fragmentsUnreachable: 4n }),
  );
  for (const part of [/^1 coded extent waits for a fragment/m, /^2 coded extents bear no/m, /^3 coded extents miss a/m, /^4 CODED/m])
    assert.match(text, part);
  assert.doesNotMatch(repairText(create(RepairStatusSchema)), /coded|fragment/i);
});

test("stray fragments for people: each with what becomes of it, and the nodes of which nothing is known", () => {
  const strays = { nodeId: "n1", extentId: 17n, index: 3 };
  const found = create(ListStrayFragmentsResponseSchema, {
    fragments: [
      { ...strays, version: 4n },
      { ...strays, version: 9n, keptBecause: "an attempt makes it: code" },
    ],
    more: true,
    unreached: ["n2"],
  });
  assert.deepEqual(straysText(found).split(/\n/).slice(1), [
    "n1    17      4        3      may be deleted",
    "n1    17      9        3      an attempt makes it: code",
    "… and more than are listed",
    "n2 did not answer: nothing is known of its fragments",
  ]);
  assert.match(straysText(create(ListStrayFragmentsResponseSchema, { unreached: ["n2"] })), /^every fragment .*\nn2 did not answer/);
});

test("repair of fragments for people: what is left, how long at this rate, and what was read for a byte; coding status says it too", () => {
  const repair = create(RepairStatusSchema, {
    ...{ fragmentsWaiting: 3n, fragmentBytesWaiting: 12n << 20n, fragmentRepairsRunning: 2, fragmentEtaMs: 4_250n },
    ...{ fragmentsDone: 9n, fragmentBytesDone: 8n << 20n, fragmentBytesRead: 32n << 20n, fragmentRunningMs: 2_800n },
  });
  const left = "3 coded extents wait for a fragment to be made again: 12 MiB, 2 being made, about 4.3 s left at this rate";
  const done = "done: 9 fragments since this stream manager leads; this time 8.0 MiB in 2.8 s, 4.00 bytes read for a byte";
  assert.deepEqual(fragmentLines(repair), [left, done]);
  const text = codingText(create(CodingStatusSchema, { profile: "rs-4-2", policy: "rs-4-2" }), fragmentLines(repair));
  assert.ok(text.includes(`${left}\n${done}`), text);
});
