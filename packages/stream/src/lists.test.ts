/** Several lists changed at once, against the same lists as plain arrays. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type ExtentId, extentId, extentVersion, type Outcome, ownerEpoch, Prng, unwrap } from "@stamp/base";
import fc from "fast-check";
import { encodeStored, recordKey, type StoredRecord, streamKey } from "./codec.ts";
import { ExtentList } from "./extent-list.ts";
import { planAllocate, planBeginSeal, planDropAllocating, planRecordSealed, planReserveIds } from "./plan-extents.ts";
import { planMultiModify, type StreamEdit } from "./plan-lists.ts";
import { planCreateStream, planDeleteStream, planOpenStream, planTruncate } from "./plan-streams.ts";
import { type ExtentPhase, segmentExtentsMax } from "./records.ts";
import type { TransactionPlan } from "./state/changes.ts";
import { StreamState } from "./state.ts";
import { checksum, refusal, replicas, Store } from "./testing/harness.ts";

const epoch = ownerEpoch(1);

const extent = (id: number, phase: ExtentPhase = "sealed"): StoredRecord => ({
  kind: "extent",
  record: {
    id: extentId(id),
    phase,
    version: extentVersion(2),
    ownerEpoch: epoch,
    stream: "/made",
    replicas: replicas.map((replica) => ({ ...replica, complete: true })),
    removed: [],
    ...(phase === "sealed" ? { sealedLengthBytes: 10 } : {}),
  },
});

/** A store with these lists, in segments as given; everything sealed. */
function storeWith(lists: Record<string, { segments: number[][]; skipCount: number; tail: number[] }>): Store {
  const store = new Store();
  const records: StoredRecord[] = [{ kind: "ids", next: 1_000_000 }];
  let segmentId = 500_000;
  const known = new Set<number>();
  for (const [name, { segments, skipCount, tail }] of Object.entries(lists)) {
    for (const id of [...segments.flat(), ...tail]) if (!known.has(id)) records.push(extent(id));
    for (const id of [...segments.flat(), ...tail]) known.add(id);
    const references = segments.map((extents) => {
      segmentId += 1;
      records.push({ kind: "segment", id: segmentId, extents: extents.map(extentId) });
      return { id: segmentId, count: extents.length };
    });
    records.push({ kind: "stream", record: { name, ownerEpoch: epoch, segments: references, skipCount, tail: tail.map(extentId) } });
  }
  for (const record of records) store.keys.set(recordKey(record), { value: encodeStored(record, checksum), version: 1 });
  store.state = store.reload();
  return store;
}

let minted = 600_000;
/** With as many new segments as it asks for. */
function modify(store: Store, edits: readonly StreamEdit[]): Outcome<void> {
  let segments = 0;
  for (;;) {
    const ids = Array.from({ length: segments }, () => minted++);
    const planned: Outcome<TransactionPlan> = planMultiModify(store.state, edits, ids, allRules);
    const wanted = planned.ok ? undefined : planned.failure.details?.segments;
    if (wanted === undefined) return store.commit(planned);
    segments = Number(wanted);
  }
}

const content = (...ranges: { stream: string; first?: number; before?: number }[]): NonNullable<StreamEdit["content"]> => ({
  ownerEpoch: epoch,
  ranges: ranges.map(({ stream, first, before }) => ({
    stream,
    ...(first === undefined ? {} : { first: extentId(first) }),
    ...(before === undefined ? {} : { before: extentId(before) }),
  })),
});
const edit = (name: string, made: StreamEdit["content"]): StreamEdit => ({ name, ownerEpoch: epoch, content: made });
const fresh = (name: string, made: StreamEdit["content"]): StreamEdit => ({ name, ownerEpoch: undefined, content: made });
const listOf = (store: Store, name: string): number[] => [...store.state.extentsOf(name)];

test("extent lists: indexes, successors and slices are those of the plain list", () => {
  const shape = fc.record({ segments: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 4 }), tail: fc.nat(4), skip: fc.nat(3) });
  fc.assert(
    fc.property(shape, fc.nat(20), fc.nat(20), ({ segments, tail, skip }, from, to) => {
      let next = 1;
      const take = (count: number): ExtentId[] => Array.from({ length: count }, () => extentId(next++));
      const pieces = segments.map((count, i) => ({ extents: take(count), from: i === 0 ? Math.min(skip, count - 1) : 0 }));
      const list = new ExtentList(pieces, take(tail));
      const plain = list.pieces.flatMap((piece) => piece.extents.slice(piece.from));
      assert.deepEqual(list.slice(0), plain);
      assert.deepEqual(list.slice(from, to), plain.slice(from, Math.max(to, from)));
      assert.deepEqual([list.length, list.first, list.last], [plain.length, plain[0], plain.at(-1)]);
      for (let id = 1; id < next; id++) {
        const at = plain.indexOf(extentId(id));
        assert.equal(list.indexOf(extentId(id)), at);
        assert.equal(list.successor(extentId(id)), at < 0 ? "absent" : plain[at + 1]);
      }
    }),
  );
});

test("multi-modify: a split shares every extent, a merge gives each once; nothing is dropped before its last list lets it go", () => {
  const store = storeWith({
    "/parent": {
      segments: [
        [1, 2, 3],
        [4, 5],
      ],
      skipCount: 1,
      tail: [6, 7],
    },
  });
  unwrap(
    modify(store, [
      edit("/parent", undefined),
      fresh("/left", content({ stream: "/parent" })),
      fresh("/right", content({ stream: "/parent" })),
    ]),
  );
  assert.deepEqual(
    [listOf(store, "/left"), listOf(store, "/right")],
    [
      [2, 3, 4, 5, 6, 7],
      [2, 3, 4, 5, 6, 7],
    ],
  );
  assert.equal(store.state.stream("/left")?.segments[1]?.id, store.state.stream("/right")?.segments[1]?.id, "segments are shared");
  store.do(planTruncate(store.state, "/left", epoch, extentId(5), allRules));
  store.sweep();
  for (let id = 2; id <= 7; id++) assert.equal(store.state.extent(extentId(id))?.phase, "sealed");
  assert.equal(store.state.extent(extentId(1))?.phase, "dropped", "no list held it");
  unwrap(
    modify(store, [fresh("/one", content({ stream: "/left" }, { stream: "/right" })), edit("/left", undefined), edit("/right", undefined)]),
  );
  assert.deepEqual(listOf(store, "/one"), [5, 6, 7, 2, 3, 4]);
  store.do(planDeleteStream(store.state, "/one", epoch, allRules));
  store.sweep();
  assert.equal(
    [...store.state.extents()].every(({ phase }) => phase === "dropped"),
    true,
  );
  assert.equal(
    [...store.keys.keys()].some((key) => key.startsWith("sm/segment/")),
    false,
  );
});

test("multi-modify: refused for another owner, another list version, a name that exists, a source that is not named", () => {
  const store = storeWith({ "/a": { segments: [], skipCount: 0, tail: [1, 2] }, "/b": { segments: [], skipCount: 0, tail: [3] } });
  const version = store.state.versionOf(streamKey("/a"));
  const before = [...store.keys];
  const whole = content({ stream: "/a" });
  assert.equal(refusal(modify(store, [{ ...edit("/a", whole), ownerEpoch: ownerEpoch(2) }])), "staleOwnerEpoch");
  assert.equal(refusal(modify(store, [{ ...edit("/a", whole), listVersion: version + 1 }])), "conflict");
  assert.equal(refusal(modify(store, [fresh("/b", whole), edit("/a", whole)])), "streamExists");
  assert.equal(refusal(modify(store, [edit("/none", whole), edit("/a", whole)])), "streamNotFound");
  assert.equal(refusal(modify(store, [fresh("/c", whole)])), "badRequest");
  assert.equal(refusal(modify(store, [edit("/a", whole), edit("/a", whole)])), "badRequest");
  assert.equal(refusal(modify(store, [edit("/a", { ...whole, ownerEpoch: ownerEpoch(0) })])), "badRequest");
  assert.equal(refusal(modify(store, [edit("/a", content({ stream: "/a", first: 3 }))])), "unknownExtent");
  assert.equal(refusal(modify(store, [edit("/a", content({ stream: "/a", first: 2, before: 1 }))])), "badRequest");
  assert.deepEqual([...store.keys], before, "nothing is written by a refused change");
  unwrap(modify(store, [{ ...edit("/a", content({ stream: "/a", first: 2 })), listVersion: version }]));
  assert.notEqual(store.state.versionOf(streamKey("/a")), version);
});

test("multi-modify: what was made ahead for a stream and owner becomes the last extent of its list, and of no other", () => {
  const store = storeWith({ "/s": { segments: [], skipCount: 0, tail: [1] } });
  const made = (stream: string, owner: number): ExtentId => {
    const id = extentId(store.state.nextId);
    store.do(planReserveIds(store.state, 1));
    store.do(planAllocate(store.state, { stream, ownerEpoch: ownerEpoch(owner), predecessor: undefined, id, replicas }, allRules));
    return id;
  };
  const [own, others, late] = [made("/t", 1), made("/u", 1), made("/t", 2)];
  const opening = (open: ExtentId, ...ranges: { stream: string }[]) => ({ ...content(...ranges), open });
  const conflict = (...edits: StreamEdit[]): void => assert.equal(refusal(modify(store, edits)), "conflict");
  conflict(fresh("/t", opening(others)));
  conflict(fresh("/t", opening(late)));
  conflict(fresh("/t", opening(extentId(1))));
  const given = made("/t", 1);
  store.do(planDropAllocating(store.state, [given]));
  conflict(fresh("/t", opening(given)));
  store.do(planCreateStream(store.state, "/open", epoch));
  store.extend("/open", 1);
  conflict(fresh("/t", opening(own, { stream: "/open" })), edit("/open", undefined));
  unwrap(modify(store, [fresh("/t", opening(own, { stream: "/s" })), edit("/s", content({ stream: "/s" }))]));
  assert.deepEqual([listOf(store, "/t"), store.state.extent(own)?.phase], [[1, own], "open"]);
  conflict(fresh("/u", opening(own)));
});

test("multi-modify: an extent that takes appends moves with its owner or not at all", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", epoch));
  const first = store.extend("/s", 1);
  const open = store.extend("/s", 1);
  const whole = content({ stream: "/s" });
  const other = { ...whole, ownerEpoch: ownerEpoch(2) };
  const conflict = (edits: StreamEdit[]): void => assert.equal(refusal(modify(store, edits)), "conflict");
  conflict([edit("/s", other)]);
  conflict([edit("/s", undefined), fresh("/t", other)]);
  conflict([edit("/s", whole), fresh("/t", whole)]);
  conflict([edit("/s", content({ stream: "/s", before: open }))]);
  conflict([
    edit("/s", content({ stream: "/s" }, { stream: "/s", first })),
    fresh("/t", content({ stream: "/s", first: open }, { stream: "/s", before: open })),
  ]);
  unwrap(modify(store, [edit("/s", undefined), fresh("/t", whole)]));
  assert.deepEqual(listOf(store, "/t"), [first, open]);
  store.do(planOpenStream(store.state, "/t", ownerEpoch(2), false, allRules));
  store.do(planBeginSeal(store.state, extentId(open)));
  store.do(planRecordSealed(store.state, extentId(open), 5));
  unwrap(modify(store, [{ name: "/t", ownerEpoch: ownerEpoch(2), content: { ...content({ stream: "/t" }), ownerEpoch: ownerEpoch(3) } }]));
  assert.equal(store.state.stream("/t")?.ownerEpoch, 3);
});

test("multi-modify: an extent that its owner says is complete is sealed there in the same change, and may be shared", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", epoch));
  store.extend("/s", 1);
  const open = store.extend("/s", 1);
  const whole = { ...content({ stream: "/s" }), ownerEpoch: ownerEpoch(2) };
  const split = (complete: NonNullable<StreamEdit["complete"]>) =>
    modify(store, [{ ...edit("/s", undefined), complete }, fresh("/left", whole), fresh("/right", whole)]);
  const before = [...store.keys];
  assert.equal(refusal(split({ extent: extentId(open - 1), lengthBytes: 7 })), "conflict", "not the last");
  store.do(planBeginSeal(store.state, extentId(open)));
  assert.equal(refusal(split({ extent: extentId(open), lengthBytes: 7 })), "conflict", "it is being sealed by what nodes say");
  store.do(planRecordSealed(store.state, extentId(open), 5));
  assert.equal(refusal(split({ extent: extentId(open), lengthBytes: 7 })), "conflict", "it was sealed elsewhere");
  assert.equal(before.length, store.keys.size);
  const next = store.extend("/s", 1);
  unwrap(split({ extent: extentId(next), lengthBytes: 7 }));
  assert.deepEqual(listOf(store, "/left"), listOf(store, "/right"));
  const sealed = store.state.extent(extentId(next));
  assert.deepEqual([sealed?.phase, sealed?.sealedLengthBytes], ["sealed", 7]);
  assert.ok((sealed?.version ?? 0) > 1, "replicas are told a new version");
});

test("multi-modify: an extent of another owner epoch is not taken for complete", () => {
  const store = new Store();
  store.do(planCreateStream(store.state, "/s", epoch));
  const open = store.extend("/s", 1);
  store.do(planOpenStream(store.state, "/s", ownerEpoch(2), false, allRules));
  const complete = { extent: extentId(open), lengthBytes: 7 };
  const edits = [{ ...edit("/s", undefined), ownerEpoch: ownerEpoch(2), complete }];
  assert.equal(refusal(modify(store, edits)), "conflict", "the one before may have more to append");
});

test("multi-modify: whatever is changed in whatever order, lists, references and what is dropped are those of plain arrays", () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 1, max: 25 }), (seed, steps) => {
      const prng = new Prng(seed);
      let next = 1;
      const ids = (count: number): number[] => Array.from({ length: count }, () => next++);
      const some = (): number[][] => Array.from({ length: prng.below(3) }, () => ids(1 + prng.below(4)));
      const shapes = Object.fromEntries(
        ["/a", "/b", "/c"].map((name) => [name, { segments: some(), skipCount: 0, tail: ids(prng.below(4)) }]),
      );
      const store = storeWith(shapes);
      const model = new Map(Object.keys(shapes).map((name) => [name, listOf(store, name)]));
      const dropped = new Set<number>();
      for (let step = 0; step < steps; step++) {
        const before = new Map(model);
        const names = prng.shuffle([...model.keys()]).slice(0, 1 + prng.below(3));
        const created = Array.from({ length: prng.below(2) }, (_, i) => `/new-${step}-${i}`);
        const edits = [...names, ...created].map((name): StreamEdit => {
          if (!created.includes(name) && prng.chance(0.2)) return edit(name, undefined);
          const ranges = Array.from({ length: prng.below(4) }, () => {
            const stream = prng.pick(names);
            const list = before.get(stream) ?? [];
            const [from, to] = [prng.below(list.length + 1), prng.below(list.length + 1)].toSorted((x, y) => x - y) as [number, number];
            const first = prng.chance(0.5) ? list[from] : undefined;
            const end = prng.chance(0.5) ? list[to] : undefined;
            return { stream, ...(first === undefined ? {} : { first }), ...(end === undefined ? {} : { before: end }) };
          });
          return created.includes(name) ? fresh(name, content(...ranges)) : edit(name, content(...ranges));
        });
        unwrap(modify(store, edits));
        for (const { name, content: made } of edits) {
          if (made === undefined) {
            model.delete(name);
            continue;
          }
          const all = made.ranges.flatMap(({ stream, first, before: end }) => {
            const list = before.get(stream) ?? [];
            return list.slice(first === undefined ? 0 : list.indexOf(first), end === undefined ? list.length : list.indexOf(end));
          });
          model.set(name, [...new Set(all)]);
        }
        if (prng.chance(0.3)) store.sweep();
        const lists = [...model.values()].flat();
        for (const state of [store.state, store.reload()]) {
          for (const [name, list] of model) assert.deepEqual([...state.extentsOf(name)], list);
          assert.equal(state.streamCount, model.size);
          for (let id = 1; id < next; id++) {
            assert.equal(state.references(extentId(id)), lists.filter((other) => other === id).length);
            const phase = state.extent(extentId(id))?.phase;
            if (phase === "dropped") dropped.add(id);
            assert.ok(!dropped.has(id) || !lists.includes(id), "dropped for ever");
            assert.ok(phase === "dropped" || lists.includes(id) || state.unreferenced().has(extentId(id)));
          }
        }
        if (model.size === 0) return;
      }
      store.sweep();
      const segments = [...store.keys.keys()].filter((key) => key.startsWith("sm/segment/"));
      const referred = new Set([...model.keys()].flatMap((name) => store.state.stream(name)?.segments.map(({ id }) => id) ?? []));
      assert.equal(segments.length, referred.size, "no segment is left over");
    }),
    { numRuns: 150 },
  );
});

test("sealed bytes: of whole segments they are added up once, and again when a length is made anew", () => {
  const ids = Array.from({ length: segmentExtentsMax }, (_, i) => extentId(i + 1));
  const sealedAt = (id: ExtentId, sealedLengthBytes: number): StoredRecord => {
    const made = extent(id) as Extract<StoredRecord, { kind: "extent" }>;
    return { ...made, record: { ...made.record, sealedLengthBytes } };
  };
  const stored = (record: StoredRecord, version: number) => ({ key: recordKey(record), value: encodeStored(record, checksum), version });
  const stream = (skipCount: number): StoredRecord => ({
    kind: "stream",
    record: { name: "/s", ownerEpoch: ownerEpoch(1), segments: [{ id: 5_000, count: ids.length }], skipCount, tail: [] },
  });
  const records = [...ids.map((id) => sealedAt(id, 10)), { kind: "segment", id: 5_000, extents: ids } as const, stream(0)];
  const state = unwrap(
    StreamState.load(
      records.map((record) => stored(record, 1)),
      checksum,
    ),
  );
  assert.equal(state.sealedBytes("/s"), 10 * ids.length);
  unwrap(state.take([stored(sealedAt(ids[3] as ExtentId, 4), 2)], checksum));
  assert.equal(state.sealedBytes("/s"), 10 * ids.length - 6);
  unwrap(state.take([stored(stream(ids.length - 2), 3)], checksum));
  assert.equal(state.sealedBytes("/s"), 20);
});
