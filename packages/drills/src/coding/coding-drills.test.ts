import assert from "node:assert/strict";
import { test } from "node:test";
import type { StampInspector } from "@stamp/cluster";
import { type CodingStatus, type ExtentInfo, ExtentState } from "@stamp/wire";
import { explain } from "../explain.ts";
import { CodedBlobs, lacksPieces } from "./coded-blobs.ts";
import { codingDrills, nodesToLose, nodeWithMostData, unfitForCoding } from "./coding-drills.ts";

const coded = (profile: string, ...fragmentNodeIds: string[]): Pick<ExtentInfo, "coded" | "fragmentNodeIds"> => ({
  coded: { profile } as ExtentInfo["coded"],
  fragmentNodeIds,
});
const inspectorOf = (answers: object): { readonly inspector: StampInspector } => ({ inspector: answers as StampInspector });

test("drill kill-fragments strikes as many nodes as the code can lose, and others the second time", () => {
  const extent = coded("rs-4-2", "a", "b", "c", "d", "e", "f");
  assert.deepEqual(nodesToLose(extent), ["a", "b"]);
  assert.deepEqual(nodesToLose(extent, 2), ["c", "d"]);
  assert.deepEqual(nodesToLose(extent, 5), ["f", "a"]);
  assert.equal(nodesToLose(coded("lrc-12-2-2", ..."abcdefghijklmnop")).length, 3);
  assert.deepEqual(nodesToLose(coded("of a later release", "a")), []);
});

test("drill slow-fragment strikes the node with the most data fragments: nobody asks for coding fragments first", () => {
  const extents = [
    coded("rs-4-2", "a", "b", "c", "d", "e", "f"),
    coded("rs-4-2", "g", "b", "a", "c", "e", "f"),
    coded("rs-4-2", "b", "e", "f", "g"),
  ];
  assert.equal(nodeWithMostData(extents), "b");
  assert.equal(nodeWithMostData([coded("rs-4-2", "a", "x", "y", "z", "e", "e")]), "a");
  assert.equal(nodeWithMostData([]), undefined);
});

test("drills take a coded extent for whole only with every fragment, a replicated one only with every replica", () => {
  const extent = (more: object): ExtentInfo =>
    ({
      state: ExtentState.SEALED,
      nodeIds: [],
      fragmentNodeIds: [],
      intactCopies: 0,
      intactFragments: 0,
      ...more,
    }) as unknown as ExtentInfo;
  const six = coded("rs-4-2", "a", "b", "c", "d", "e", "f");
  assert.equal(lacksPieces(extent({ ...six, intactFragments: 6 })), false);
  assert.equal(lacksPieces(extent({ ...six, intactFragments: 5 })), true);
  assert.equal(lacksPieces(extent({ nodeIds: ["a", "b", "c"], intactCopies: 3 })), false);
  assert.equal(lacksPieces(extent({ nodeIds: ["a", "b", "c"], intactCopies: 2 })), true);
  assert.equal(lacksPieces(extent({ nodeIds: ["a", "b", "c"], state: ExtentState.OPEN })), false);
});

test("drills of coding say why they can't run on a cluster that codes nothing, later, or is paused", async () => {
  const target = (status: Partial<CodingStatus>) =>
    inspectorOf({ ask: () => Promise.resolve({ profile: "rs-4-2", whyNone: "", afterSeconds: 2n, pause: undefined, ...status }) });
  assert.equal(await unfitForCoding(target({})), undefined);
  assert.match(
    (await unfitForCoding(target({ profile: "", whyNone: "auto needs 7 extent nodes" }))) ?? "",
    /coded on this cluster: auto needs 7/,
  );
  assert.match((await unfitForCoding(target({ afterSeconds: 3_600n }))) ?? "", /after 3600 s/);
  assert.match(
    (await unfitForCoding(target({ pause: { note: "", wallMs: 1n } as CodingStatus["pause"] as never }))) ?? "",
    /coding resume/,
  );
  for (const each of codingDrills) assert.equal(each.unfit, unfitForCoding);
});

test("explain of a drill of coding names its cluster, its reader and the aim of reads", () => {
  const text = explain("slow-fragment") ?? "";
  assert.match(text, /\nCluster\n {2}Its own, with extentNodes 7, .*Not with --compose/);
  assert.match(text, /A reader compares the coded blobs/);
  assert.match(text, /reads of coded blobs took 1000 ms at most/);
  assert.match(text, /\n {2}hedge +Second question/);
  assert.doesNotMatch(explain("power-loss") ?? "", /Cluster\n|coded blobs/);
});

test("reads of coded blobs: another byte, an absent blob and a retry are told, each with its time", async () => {
  const contents = new Map<string, Buffer>();
  let answer: (name: string) => { readonly kind: "answer"; readonly status: number; readonly headers: object; readonly body: Buffer };
  const found = (name: string) => ({ kind: "answer" as const, status: 200, headers: {}, body: contents.get(name) ?? Buffer.alloc(0) });
  const done = { kind: "answer" as const, status: 201, headers: {}, body: Buffer.alloc(0) };
  const client = {
    createContainer: async () => done,
    put: async (_container: string, name: string, body: Uint8Array) => {
      contents.set(name, Buffer.from(body));
      return done;
    },
    get: async (_container: string, name: string) => answer(name),
  };
  const extents = (): object[] =>
    Array.from({ length: Math.floor(contents.size / 2) }, (_, i) => ({
      ...{ stream: "/ps/blob-1/blob-data", location: { extentId: BigInt(i) }, state: ExtentState.SEALED },
    }));
  const blobs = new CodedBlobs(inspectorOf({ extents: async () => extents() }), client as never, "c");
  await blobs.write();
  assert.equal(contents.size, 8, "two rounds of four blobs fill four extents");
  answer = found;
  await blobs.readAll("before");
  assert.deepEqual([blobs.broken, blobs.times.length], [[], 8]);
  let refusals = 2;
  answer = (name) => (refusals-- > 0 ? { ...found(name), status: 503 } : found(name));
  await blobs.readAll("while a node is away");
  assert.deepEqual([blobs.broken, blobs.times.length], [[], 16]);
  answer = (name) => (name === "coded-1" ? { ...found(name), status: 404 } : name === "coded-2" ? found("coded-3") : found(name));
  await blobs.readAll("afterwards");
  assert.deepEqual(blobs.broken.toSorted(), [
    "coded-1 was acknowledged, but reading it afterwards gives 404",
    "coded-2: other bytes than were written, read afterwards",
  ]);
});
