import assert from "node:assert/strict";
import { test } from "node:test";
import { compare, type ManagerExtent, type NodeFragment, type NodeReplica, type NodeView } from "./compare.ts";

const extent: ManagerExtent = { id: 7, phase: "sealed", sealedLengthBytes: 100, checksum: 5, nodes: ["a", "b", "c"], stream: "/s" };
const whole: NodeReplica = { id: 7, state: "sealed", sealedLengthBytes: 100, checksum: 5, problems: [], foundNow: false };
const view = (node: string, ...replicas: NodeReplica[]): NodeView => ({
  node,
  unreached: undefined,
  replicas: new Map(replicas.map((replica) => [replica.id, replica])),
  fragments: [],
  strayFiles: [],
});
const found = (extents: readonly ManagerExtent[], nodes: readonly NodeView[]): string[] =>
  compare(extents, nodes).map(({ kind, node, extent: id }) => `${kind} ${node ?? "-"} ${id ?? "-"}`);

test("fsck: what agrees is no problem", () => {
  assert.deepEqual(
    found(
      [extent],
      ["a", "b", "c"].map((node) => view(node, whole)),
    ),
    [],
  );
  const open: ManagerExtent = { ...extent, phase: "open", sealedLengthBytes: undefined, checksum: undefined };
  const closed: NodeReplica = { ...whole, state: "closed", sealedLengthBytes: undefined, checksum: undefined };
  assert.deepEqual(found([open], [view("a", closed), view("b", closed), view("c", whole)]), []);
});

test("fsck: from the stream manager to the nodes: missing, damaged, not sealed, another length, another content", () => {
  assert.deepEqual(
    found(
      [extent, { ...extent, id: 8 }],
      [
        view("a"),
        view("b", { ...whole, state: "damaged" }, { ...whole, id: 8, sealedLengthBytes: 90 }),
        view("c", { ...whole, state: "closed" }, { ...whole, id: 8, checksum: 6 }),
      ],
    ),
    [
      "missingReplica a 7",
      "damagedReplica b 7",
      "notSealed c 7",
      "lostExtent - 7",
      "missingReplica a 8",
      "wrongLength b 8",
      "wrongChecksum c 8",
      "lostExtent - 8",
    ],
  );
});

test("fsck: from the nodes to the stream manager: unknown, left over, stray files; a node of which nothing is known loses nothing", () => {
  const dropped: ManagerExtent = { ...extent, id: 9, phase: "dropped" };
  assert.deepEqual(
    found(
      [extent, dropped],
      [
        { ...view("a", whole), strayFiles: ["extents/00/x"] },
        { ...view("b"), unreached: "no answer" },
        { ...view("c"), unreached: "no answer" },
        view("d", whole, { ...whole, id: 9 }, { ...whole, id: 10 }),
      ],
    ),
    ["strayFile a -", "node b -", "node c -", "leftOver d 7", "unknownExtent d 10"],
  );
  const nothing = ["a", "b", "c"].map((node) => ({ ...view(node), unreached: "down" }));
  assert.ok(!found([extent], nothing).some((each) => each.startsWith("lostExtent")));
});

test("fsck: what a node found on its own disk is told, also when the replica was replaced before fsck was done", () => {
  const hurt: NodeReplica = { ...whole, state: "damaged", problems: ["its file is gone"], foundNow: true };
  assert.deepEqual(found([extent], [view("a", whole), view("b", whole), view("c", whole), view("d", hurt)]), ["damagedReplica d 7"]);
  assert.deepEqual(
    found(
      [extent],
      ["a", "b", "c"].map((node) => view(node, { ...whole, problems: node === "b" ? ["header"] : [] })),
    ),
    ["replica b 7"],
  );
});

const nodes = ["a", "b", "c", "d", "e", "f"];
const coded: ManagerExtent = {
  ...extent,
  nodes: [],
  coded: { profile: "rs-4-2", fragments: nodes.map((node) => ({ node, version: 5 })) },
};
const fragment: NodeFragment = { id: 7, version: 5, index: 0, damage: "" };
/** Each node has its fragment, but for those that are named here. */
const holding = (others: Readonly<Record<string, readonly NodeFragment[]>> = {}): NodeView[] =>
  nodes.map((node, index) => ({ ...view(node), fragments: others[node] ?? [{ ...fragment, index }] }));

test("fsck: a coded extent whose fragments are where the stream manager says is no problem", () => {
  assert.deepEqual(found([coded], holding()), []);
});

test("fsck: fragments that are missing, damaged or another one; an extent is lost only if the others do not give it back", () => {
  const two = { a: [], c: [{ ...fragment, index: 2, damage: "chunk 1" }] };
  assert.deepEqual(found([coded], holding(two)), ["missingFragment a 7", "damagedFragment c 7"]);
  assert.deepEqual(found([coded], holding({ ...two, f: [fragment] })), [
    "missingFragment a 7",
    "damagedFragment c 7",
    "wrongFragment f 7",
    "lostExtent - 7",
  ]);
  const away = holding(two).map((each) => (each.node === "f" ? { ...each, unreached: "down", fragments: [] } : each));
  assert.deepEqual(found([coded], away), ["node f -", "missingFragment a 7", "damagedFragment c 7"], "of f nothing is known");
});

test("fsck: fragments that no record places there: of another version, of a replicated extent, of one that nobody knows", () => {
  const own = { ...fragment, index: 1 };
  const dropped: ManagerExtent = { ...coded, id: 9, phase: "dropped" };
  const held = { b: [own, { ...own, version: 4 }, { ...own, id: 8 }, { ...own, id: 9 }, { ...own, id: 10 }] };
  assert.deepEqual(found([coded, { ...extent, id: 8, nodes: [] }, dropped], holding(held)), [
    "leftOver b 7",
    "leftOver b 8",
    "unknownFragment b 10",
  ]);
});

test("fsck: nodes that have heard of later metadata than the ones in use: content of a never opened extent, a higher version", () => {
  const never: ManagerExtent = { ...extent, id: 9, phase: "dropped", sealedLengthBytes: undefined, checksum: undefined, neverOpened: true };
  const held: NodeReplica = { ...whole, id: 9, contentBytes: 100 };
  assert.deepEqual(found([never], [view("a", held), view("b", held)]), ["olderMetadata a 9", "olderMetadata b 9"]);
  const unsealed = { ...held, state: "open", sealedLengthBytes: undefined } as const;
  assert.deepEqual(found([never], [view("a", { ...unsealed, contentBytes: 0 })]), [], "an empty replica is what it leaves");
  assert.deepEqual(found([{ ...never, neverOpened: false }], [view("a", held)]), [], "a dropped extent is kept for the grace");
  const open: ManagerExtent = { ...extent, phase: "open", sealedLengthBytes: undefined, checksum: undefined, nodes: ["a"], version: 1 };
  assert.deepEqual(found([open], [view("a", { ...whole, version: 2 })]), ["olderMetadata a 7"]);
  assert.deepEqual(found([{ ...open, version: 2 }], [view("a", { ...whole, version: 2 })]), []);
});
