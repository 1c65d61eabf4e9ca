/** Nodes whose listings can't be true: others are compared all the same, and the process goes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, ok, rulesWithout, unwrap } from "@stamp/base";
import { silentLogger } from "@stamp/ports";
import type { Coder } from "../coding/coder.ts";
import { FragmentAdoption } from "../coding/fragment-adoption.ts";
import { HeldFragments } from "../coding/held-fragments.ts";
import { StrayCalls } from "../coding/stray-calls.ts";
import type { Completer } from "../seal/completer.ts";
import type { Sealer } from "../seal/sealer.ts";
import { SentDeletions } from "../sent-deletions.ts";
import type { Term } from "../term/term.ts";
import { LaterReplicas } from "./later-replicas.ts";
import { NodeSync } from "./node-sync.ts";

interface Page {
  readonly items: readonly { readonly extentId: bigint; readonly version: bigint }[];
  readonly more: boolean;
}

const item = (id: bigint, version = 1n) => ({ extentId: id, version, index: 0, damage: "", durableBytes: 1n });
const restMs = 60_000;

/** Nodes that list nothing, but for `en1`, which answers `pageOf(after)`, and for those that never answer. */
function surroundings(pageOf: (after: bigint) => Page, silent: readonly string[] = []) {
  const asked = new Map<string, number>();
  const logged: { readonly message: string; readonly fields: Record<string, unknown> }[] = [];
  const time = { nowMs: 0 };
  const clock = {
    monotonicMs: () => time.nowMs,
    after: (_: number, callback: () => void) => {
      setImmediate(callback);
      return { cancel: () => {} };
    },
  };
  const answer = async (address: string, after: bigint): Promise<Page> => {
    asked.set(address, (asked.get(address) ?? 0) + 1);
    if (silent.includes(address)) await new Promise(() => {});
    return address === "en1" ? pageOf(after) : { items: [], more: false };
  };
  const client = (address: string) => ({
    listFragments: async ({ afterExtentId }: { readonly afterExtentId: bigint }) => {
      const { items, more } = await answer(address, afterExtentId);
      return ok({ fragments: items, more });
    },
    listExtentReplicas: async ({ afterExtentId }: { readonly afterExtentId: bigint }) => {
      const { items, more } = await answer(address, afterExtentId);
      return ok({ replicas: items, more });
    },
    getExtentReplica: async () => ok({ ...item(5n), durableBytes: 1n << 60n }),
  });
  const logger = { ...silentLogger, error: (message: string, fields = {}) => logged.push({ message, fields }) };
  const places = Array.from({ length: 6 }, (_, i) => ({ nodeId: `en${i + 1}`, diskId: `d${i + 1}`, duty: "active" }));
  const nodes = {
    address: (nodeId: string) => nodeId,
    reachable: () => true,
    quarantined: () => new Map(),
    later: new LaterReplicas(),
    quarantine: () => {},
    release: () => {},
  };
  const term = {
    ...{ ended: new AbortController().signal, nodes, config: { syncEveryMs: 600_000 } },
    state: { codedCount: 1, extents: () => [], attempts: () => new Set(), extent: () => undefined, nodes: () => places },
    world: { transport: { client }, clock, logger, rules: rulesWithout() },
  } as unknown as Term;
  return { term, time, places, asked, logged };
}

const turns = async (count = 200): Promise<void> => {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
};

const wrong: Readonly<Record<string, (after: bigint) => Page>> = {
  "the same page again and again": () => ({ items: [item(5n)], more: true }),
  "a page that goes back": (after) => ({ items: after === 0n ? [item(7n), item(6n)] : [item(after + 1n)], more: false }),
  "an empty page with more to follow": () => ({ items: [], more: true }),
  "an extent whose number is out of range": () => ({ items: [item(1n << 60n)], more: false }),
};

for (const [name, pageOf] of Object.entries(wrong)) {
  test(`listings: ${name} ends the comparison of fragments with that node alone, and it is asked again later`, async () => {
    const { asked, logged, places, term, time } = surroundings(pageOf);
    const held = new HeldFragments(term, () => {});
    const hear = (): void => {
      for (const place of places) held.heard(place, 1, { damage: "0", count: 1 });
    };
    hear();
    await turns();
    assert.deepEqual(
      places.map((place) => held.isCompared(place)),
      [false, true, true, true, true, true],
    );
    assert.ok((asked.get("en1") ?? 0) <= 2);
    assert.deepEqual(
      logged.map(({ fields }) => [fields.node, fields.what]),
      [["en1", "fragments"]],
    );
    const before = asked.get("en1") ?? 0;
    hear();
    await turns();
    assert.equal(asked.get("en1"), before, "it rests");
    time.nowMs += restMs;
    hear();
    await turns();
    assert.ok((asked.get("en1") ?? 0) > before, "it is asked again");
  });

  test(`listings: ${name} ends the comparison of replicas with that node alone`, async () => {
    const { asked, logged, places, term } = surroundings(pageOf);
    const sync = new NodeSync(term, {} as Sealer, {} as Completer);
    for (const place of places) sync.heard(place, 1);
    await turns();
    assert.deepEqual([...asked.keys()].sort(), ["en1", "en2", "en3", "en4", "en5", "en6"]);
    assert.ok((asked.get("en1") ?? 0) <= 2);
    assert.ok(logged.some(({ fields }) => fields.node === "en1" && fields.what === "replicas"));
  });

  test(`listings: ${name} makes a node unreached in the list of strays`, async () => {
    const { term } = surroundings(pageOf);
    const listed = unwrap(await new StrayCalls(term, new HeldFragments(term, () => {})).list());
    assert.deepEqual([listed.fragments, listed.unreached], [[], ["en1"]]);
  });
}

test("listings: a fragment with a number out of range is not adopted, and its node is named", async () => {
  const { logged, term } = surroundings(() => ({ items: [{ ...item(5n), version: 1n << 60n }], more: false }));
  const extent = { ...{ id: extentId(5), phase: "sealed", version: 1, replicas: [], removed: [] }, sealedLengthBytes: 1, checksum: 7 };
  Object.assign(term.state, { extent: () => extent });
  const coder = { isReadable: () => false } as unknown as Coder;
  const held = new HeldFragments(term, () => {});
  const adopted = await new FragmentAdoption(term, { coder, held, sent: new SentDeletions() }).adopt(extentId(5));
  assert.ok(!adopted.ok && /what these nodes hold is not known: en1$/.test(adopted.failure.message));
  assert.deepEqual(
    logged.map(({ fields }) => fields.node),
    ["en1"],
  );
});

test("listings: three nodes that never answer do not keep others from being compared", async () => {
  const { places, term } = surroundings(() => ({ items: [], more: false }), ["en1", "en2", "en3"]);
  const held = new HeldFragments(term, () => {});
  for (const place of places) held.heard(place, 1, { damage: "0", count: 1 });
  await turns();
  assert.deepEqual(
    places.map((place) => held.isCompared(place)),
    [false, false, false, true, true, true],
  );
});

test("listings: four nodes that are slow leave their places to others after a while", async () => {
  const { places, term, time } = surroundings(() => ({ items: [], more: false }), ["en1", "en2", "en3", "en4"]);
  const held = new HeldFragments(term, () => {});
  const compared = async (): Promise<boolean[]> => {
    for (const place of places) held.heard(place, 1, { damage: "0", count: 1 });
    await turns();
    return places.map((place) => held.isCompared(place));
  };
  assert.deepEqual(await compared(), [false, false, false, false, false, false]);
  time.nowMs += 10_000;
  assert.deepEqual(await compared(), [false, false, false, false, true, true]);
});

test("listings: a replica with a number out of range is not quarantined, and its node is named", async () => {
  const { logged, places, term } = surroundings(() => ({ items: [], more: false }));
  const [place] = places;
  assert.ok(place !== undefined);
  await new NodeSync(term, {} as Sealer, {} as Completer).lookAgain(place, extentId(5));
  assert.deepEqual(
    logged.map(({ fields }) => fields.node),
    ["en1"],
  );
});
