/** Transactions of coded extents: any order of them leaves the extent stored once, and no file forgotten. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, extentId, ownerEpoch, Prng, type Rules, rulesWithout, unwrap } from "@stamp/base";
import {
  planBeginRepair,
  planBeginSeal,
  planFinishRepair,
  planForgetRemoved,
  planMarkReplicas,
  planRecordSealed,
} from "../plan-extents.ts";
import { planCreateStream, planDeleteStream } from "../plan-streams.ts";
import type { ExtentRecord, FragmentPlace, ReplicaPlace } from "../records.ts";
import { assess } from "../repair.ts";
import { refusal, replicas, Store } from "../testing/harness.ts";
import {
  notCodable,
  planAbandonAttempt,
  planBeginCoding,
  planBeginDecoding,
  planBeginFragmentRepair,
  planFinishCoding,
  planFinishDecoding,
  planFinishFragmentRepair,
  planForgetFragment,
} from "./plan-coding.ts";

const nodes: readonly ReplicaPlace[] = Array.from({ length: 9 }, (_, i) => ({ nodeId: `n${i + 1}`, diskId: `disk of n${i + 1}` }));
const six = nodes.slice(0, 6);
const key = ({ nodeId, diskId }: ReplicaPlace): string => `${nodeId} ${diskId}`;
const fragmentKey = (place: FragmentPlace): string => `${key(place)} ${place.version}`;

/** A stream with one sealed extent, whole on three nodes. */
function sealedExtent(): { store: Store; id: ReturnType<typeof extentId> } {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", ownerEpoch(1)));
  const id = extentId(store.extend("/s", 1));
  store.do(planBeginSeal(store.state, id));
  store.do(planRecordSealed(store.state, id, 1_000_000));
  const all = new Set(replicas.map(({ nodeId }) => nodeId));
  store.do(planMarkReplicas(store.state, id, all, true, { checksum: 77, minCopies: 2 }));
  return { store, id };
}

const recordOf = (store: Store, id: number): ExtentRecord => store.state.extent(extentId(id)) as ExtentRecord;

test("coding: fragments take the place of the replicas in one transaction, and replicas theirs", () => {
  const { store, id } = sealedExtent();
  store.do(planBeginCoding(store.state, id, "rs-4-2", six, allRules));
  const begun = recordOf(store, id);
  assert.equal(begun.replicas.length, 3);
  assert.equal(begun.attempt?.version, begun.version);
  assert.deepEqual([...store.state.attempts()], [id]);
  assert.equal(store.state.replicasOn("n6"), 1, "a node that is given a fragment is not empty");
  store.do(planFinishCoding(store.state, id, begun.version));
  const coded = recordOf(store, id);
  assert.deepEqual(coded.replicas, []);
  assert.deepEqual(coded.coded, { profile: "rs-4-2", fragments: six.map((each) => ({ ...each, version: begun.version })) });
  assert.deepEqual(
    coded.removed.map(({ nodeId }) => nodeId),
    ["n1", "n2", "n3"],
  );
  assert.deepEqual([...store.state.attempts()], []);
  assert.equal(store.state.codedCount, 1);
  assert.equal(store.reload().codedCount, 1);
  assert.equal(assess(coded, 3, () => ({ live: false, lost: true, leaving: false })).kind, "fine", "repair of replicas leaves it alone");

  store.do(planBeginFragmentRepair(store.state, id, 2, nodes[6] as ReplicaPlace, allRules));
  const repair = recordOf(store, id);
  store.do(planFinishFragmentRepair(store.state, id, repair.version));
  assert.deepEqual(recordOf(store, id).coded?.fragments[2], { ...nodes[6], version: repair.version });
  assert.deepEqual(recordOf(store, id).removedFragments, [{ ...six[2], version: begun.version }]);

  store.do(planBeginDecoding(store.state, id, nodes.slice(0, 3), allRules));
  const decode = recordOf(store, id);
  assert.equal(decode.coded?.profile, "rs-4-2", "it is coded until the replicas are there");
  store.do(planFinishDecoding(store.state, id, decode.version));
  const replicated = recordOf(store, id);
  assert.equal(replicated.coded, undefined);
  assert.deepEqual(
    replicated.replicas,
    nodes.slice(0, 3).map((each) => ({ ...each, complete: true })),
  );
  assert.deepEqual(replicated.removed, [], "a new replica in the place of an old one is not to be deleted");
  assert.equal(replicated.removedFragments?.length, 7);
  for (const place of replicated.removedFragments ?? []) store.do(planForgetFragment(store.state, id, place));
  assert.equal(recordOf(store, id).removedFragments, undefined);
  assert.equal(store.state.codedCount, 0);
});

test("coding: what is not whole, not sealed or under repair is not coded, with the reason", () => {
  const { store, id } = sealedExtent();
  const whole = recordOf(store, id);
  const because = (change: Partial<ExtentRecord>): string | undefined => notCodable({ ...whole, ...change });
  assert.equal(because({}), undefined);
  assert.match(because({ phase: "open" }) ?? "", /not sealed/);
  assert.match(because({ phase: "dropped" }) ?? "", /not sealed/);
  assert.match(because({ untold: ["n1"] }) ?? "", /told to nobody/);
  assert.match(because({ sealedLengthBytes: 0 }) ?? "", /empty/);
  assert.match(because({ repair: nodes[5] as ReplicaPlace }) ?? "", /made anew/);
  assert.match(because({ replicas: whole.replicas.map((each, i) => ({ ...each, complete: i > 0 })) }) ?? "", /not complete/);
  const { checksum: _checksum, ...unmeasured } = whole;
  assert.match(notCodable(unmeasured) ?? "", /checksum/);
  store.do(planBeginRepair(store.state, id, nodes[4] as ReplicaPlace));
  assert.equal(refusal(planBeginCoding(store.state, id, "rs-4-2", six, allRules)), "conflict");
  assert.equal(refusal(planBeginDecoding(store.state, id, nodes.slice(0, 3), allRules)), "conflict");
});

test("coding: the repair of a replica takes the attempt back; the end of that attempt is refused from then on", () => {
  const { store, id } = sealedExtent();
  store.do(planBeginCoding(store.state, id, "rs-4-2", six, allRules));
  const attempt = recordOf(store, id).version;
  store.do(planMarkReplicas(store.state, id, new Set(["n1"]), false));
  store.do(planBeginRepair(store.state, id, nodes[6] as ReplicaPlace));
  const repairing = recordOf(store, id);
  assert.equal(repairing.attempt, undefined);
  assert.deepEqual(
    repairing.removedFragments,
    six.map((each) => ({ ...each, version: attempt })),
  );
  assert.equal(refusal(planFinishCoding(store.state, id, attempt)), "conflict");
  assert.deepEqual(unwrap(planAbandonAttempt(store.state, id, attempt)).changes, []);
});

test("coding: two fragments on one node are refused; an attempt that is over can't be ended by its number", () => {
  const { store, id } = sealedExtent();
  assert.throws(() => planBeginCoding(store.state, id, "rs-4-2", [...six.slice(0, 5), six[0] as ReplicaPlace], allRules), /another node/);
  store.do(planBeginCoding(store.state, id, "rs-4-2", six, allRules));
  const first = recordOf(store, id).version;
  store.do(planAbandonAttempt(store.state, id, first));
  store.do(planBeginCoding(store.state, id, "rs-4-2", nodes.slice(3), allRules));
  assert.equal(refusal(planFinishCoding(store.state, id, first)), "conflict");
  store.do(planFinishCoding(store.state, id, recordOf(store, id).version));
  assert.equal(refusal(planBeginFragmentRepair(store.state, id, 0, nodes[4] as ReplicaPlace, allRules)), "conflict");
  assert.equal(refusal(planBeginFragmentRepair(store.state, id, 6, nodes[0] as ReplicaPlace, allRules)), "badRequest");
  store.do(planBeginFragmentRepair(store.state, id, 0, nodes[3] as ReplicaPlace, allRules));
  assert.equal(refusal(planFinishDecoding(store.state, id, recordOf(store, id).version)), "conflict", "of another kind");
});

test("coding: an extent that is dropped in an attempt keeps its files in the record, and the attempt can't end", () => {
  const { store, id } = sealedExtent();
  store.do(planBeginCoding(store.state, id, "rs-4-2", six, allRules));
  const attempt = recordOf(store, id).version;
  store.do(planDeleteStream(store.state, "/s", ownerEpoch(1), allRules));
  store.sweep();
  assert.equal(recordOf(store, id).phase, "dropped");
  assert.equal(recordOf(store, id).attempt?.version, attempt);
  assert.equal(refusal(planFinishCoding(store.state, id, attempt)), "conflict");
  assert.deepEqual([...store.state.attempts()], []);
  assert.ok(store.state.garbage().has(id));
  assert.equal(store.state.replicasOn("n6"), 0);
});

/** Files that were ever to be made, and not forgotten since. */
class Files {
  readonly fragments = new Set<string>();
  readonly replicas = new Set<string>(replicas.map(key));
  readonly versions: number[] = [];
}

const fragmentsIn = ({ coded, attempt, removedFragments }: ExtentRecord): FragmentPlace[] => [
  ...(coded?.fragments ?? []),
  ...(removedFragments ?? []),
  ...(attempt?.kind === "code" ? attempt.targets.map((each) => ({ ...each, version: attempt.version })) : []),
  ...(attempt?.kind === "repair" ? [{ ...attempt.target, version: attempt.version }] : []),
];

function judge(extent: ExtentRecord, files: Files): void {
  const { coded, attempt, repair } = extent;
  const fragments = fragmentsIn(extent).map(fragmentKey);
  assert.deepEqual([...new Set(fragments)].sort(), [...files.fragments].sort(), "every fragment file is in the record");
  const decoding = attempt?.kind === "decode" ? attempt.targets : [];
  const places = [...extent.replicas, ...extent.removed, ...(repair ? [repair] : []), ...decoding].map(key);
  assert.deepEqual([...new Set(places)].sort(), [...files.replicas].sort(), "every replica is in the record");
  assert.ok(repair === undefined || attempt === undefined, "one thing at a time");
  if (coded === undefined) assert.ok(extent.replicas.length >= 3, "replicated");
  else {
    assert.deepEqual(extent.replicas, []);
    assert.equal(new Set(coded.fragments.map(({ nodeId }) => nodeId)).size, 6, "a fragment on each of six nodes");
    const removed = new Set((extent.removedFragments ?? []).map(fragmentKey));
    for (const each of coded.fragments) assert.ok(!removed.has(fragmentKey(each)), "what is in use is not garbage");
  }
  assert.equal(new Set(files.versions).size, files.versions.length, "an attempt has a version of its own");
}

/** A run of random transactions; those that are refused change nothing. */
function run(seed: number, rules: Rules, ends: Map<string, number> = new Map()): void {
  const prng = new Prng(seed);
  const { store, id } = sealedExtent();
  const files = new Files();
  const some = (count: number): ReplicaPlace[] => {
    const left = [...nodes];
    return Array.from({ length: count }, () => left.splice(prng.below(left.length), 1)[0] as ReplicaPlace);
  };
  const began = (add: Set<string>, keys: (version: number) => string[]): void => {
    const { attempt } = recordOf(store, id);
    files.versions.push(attempt?.version ?? 0);
    for (const each of keys(attempt?.version ?? 0)) add.add(each);
  };
  for (let step = 0; step < 60; step++) {
    const extent = recordOf(store, id);
    const old = extent.attempt?.version ?? prng.below(extent.version + 2);
    const targets = some(prng.chance(0.5) ? 6 : 3);
    const [one] = some(1) as [ReplicaPlace];
    const index = prng.below(6);
    const removed = extent.removedFragments?.[0];
    const steps: (() => void)[] = [
      () => {
        const begun = store.commit(planBeginCoding(store.state, id, "rs-4-2", some(6), rules));
        const { attempt } = recordOf(store, id);
        if (begun.ok && attempt?.kind === "code")
          began(files.fragments, (version) => attempt.targets.map((each) => `${key(each)} ${version}`));
      },
      () => void store.commit(planFinishCoding(store.state, id, old)),
      () => void store.commit(planAbandonAttempt(store.state, id, old)),
      () => {
        if (store.commit(planBeginFragmentRepair(store.state, id, index, one, rules)).ok)
          began(files.fragments, (version) => [`${key(one)} ${version}`]);
      },
      () => void store.commit(planFinishFragmentRepair(store.state, id, old)),
      () => {
        if (store.commit(planBeginDecoding(store.state, id, targets.slice(0, 3), rules)).ok)
          began(files.replicas, () => targets.slice(0, 3).map(key));
      },
      () => void store.commit(planFinishDecoding(store.state, id, old)),
      () => {
        if (extent.replicas.some((replica) => key(replica) === key(one))) return;
        if (store.commit(planBeginRepair(store.state, id, one)).ok) files.replicas.add(key(one));
      },
      () => void store.commit(planFinishRepair(store.state, id, extent.replicas[prng.below(3)])),
      () => {
        if (removed === undefined) return;
        store.do(planForgetFragment(store.state, id, removed));
        files.fragments.delete(fragmentKey(removed));
      },
      () => {
        const place = extent.removed[0];
        // Like garbage collection: a file that is in use again is only taken from the list.
        if (place === undefined) return;
        const used = [...extent.replicas, ...(extent.repair ? [extent.repair] : [])];
        if (extent.attempt?.kind === "decode") used.push(...extent.attempt.targets.map((each) => ({ ...each, complete: false })));
        store.do(planForgetRemoved(store.state, id, place));
        if (!used.some((other) => key(other) === key(place))) files.replicas.delete(key(place));
      },
      () => assert.deepEqual(store.reload().extent(id), recordOf(store, id)),
    ];
    (steps[prng.below(steps.length)] as () => void)();
    const after = recordOf(store, id);
    if (extent.attempt !== undefined && after.attempt === undefined) {
      const stored = after.coded === undefined ? "to replicas" : "to fragments";
      const end = `${extent.attempt.kind} ${after.repair === undefined ? stored : "for a repair"}`;
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    judge(after, files);
  }
}

test("coding: after any transactions the extent is stored once, each file is in the record, and attempts have versions of their own", () => {
  const ends = new Map<string, number>();
  for (let seed = 0; seed < 400; seed++) run(seed, allRules, ends);
  // Finished, taken back, and ended by a repair: every way is gone many times.
  const ways = [
    "code to fragments",
    "code to replicas",
    "code for a repair",
    "repair to fragments",
    "decode to replicas",
    "decode to fragments",
  ];
  for (const way of ways) assert.ok((ends.get(way) ?? 0) > 20, `${way}: ${ends.get(way)}`);
});

test("coding, rule replicasGoAtCommit: without it an attempt that was taken back leaves an extent that is stored nowhere", () => {
  for (const rules of [allRules, rulesWithout("replicasGoAtCommit")]) {
    const { store, id } = sealedExtent();
    store.do(planBeginCoding(store.state, id, "rs-4-2", six, rules));
    store.do(planAbandonAttempt(store.state, id, recordOf(store, id).version));
    assert.equal(recordOf(store, id).replicas.length, rules === allRules ? 3 : 0);
  }
});

test("coding, rule fragmentsGoAfterAbort: without it fragments that are in use are garbage", () => {
  for (const rules of [allRules, rulesWithout("fragmentsGoAfterAbort")]) {
    const { store, id } = sealedExtent();
    store.do(planBeginCoding(store.state, id, "rs-4-2", six, rules));
    store.do(planFinishCoding(store.state, id, recordOf(store, id).version));
    const { coded, removedFragments = [] } = recordOf(store, id);
    assert.deepEqual(removedFragments, rules === allRules ? [] : coded?.fragments);
  }
});

test("coding, rule attemptVersionFresh: without it a later attempt makes files of the same names as an earlier one", () => {
  assert.throws(() => {
    for (let seed = 0; seed < 400; seed++) run(seed, rulesWithout("attemptVersionFresh"));
  }, /a version of its own|what is in use is not garbage|every fragment file/);
});
