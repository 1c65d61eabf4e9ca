import assert from "node:assert/strict";
import { test } from "node:test";
import { ok, refused } from "@stamp/base";
import { ExtentState } from "@stamp/wire";
import { type PlaceParts, placeLists } from "./places.ts";

const extentInfo = (id: bigint) => ({
  location: { extentId: id, sealedLengthBytes: 4n },
  stream: "/ps/blob-1/blob-data",
  state: ExtentState.SEALED,
  ownerEpoch: 1n,
  nodeIds: ["extent-node-1"],
  intactCopies: 1,
  attempt: "",
});

/** `answers`: of the process at an address to any call; `asked`: what was asked, in order. */
function world(answers: Readonly<Record<string, (request: never) => unknown>>, ranges: readonly object[] = []) {
  const asked: unknown[] = [];
  const client = (address: string) => {
    const answer = async (request: never) => {
      asked.push([address, request]);
      return answers[address]?.(request);
    };
    return { locateBlob: answer, listExtentUsers: answer };
  };
  const inspector = { extent: async (id: bigint) => (id === 404n ? undefined : extentInfo(id)), ranges: async () => ranges };
  const parts = { inspector: () => inspector, transport: { client }, frontEnds: () => ["fe-1", "fe-2"] } as unknown as PlaceParts;
  const ask = async (path: string, query: Readonly<Record<string, string>>) => {
    const list = placeLists(parts)[path];
    assert.ok(list);
    return (await list(new URLSearchParams(query))) as { readonly items: readonly Record<string, unknown>[]; readonly next: string | null };
  };
  return { ask, asked };
}

const down = () => refused("unavailable", "connectFailed", "no connection");
const blob = { account: "acme", container: "c", name: "b" };

test("places of a blob: of the first front-end that answers; a page ends before its extents are too many", async () => {
  const pieces = Array.from({ length: 60 }, (_, at) => ({
    startBytes: BigInt(at * 10),
    lengthBytes: 10n,
    in: { case: "extentId", value: BigInt(at + 1) },
  }));
  const { ask, asked } = world({ "fe-1": down, "fe-2": () => ok({ pieces, rangeId: "blob-1", nextBytes: 600n }) });
  const page = await ask("/api/blob-places", { ...blob, after: "" });
  assert.equal(page.items.length, 50);
  assert.equal(page.next, "500");
  const [first] = page.items;
  assert.ok(first);
  assert.equal((first.extent as { id: string }).id, "1");
  assert.deepEqual({ ...first, extent: null }, { startBytes: 0, bytes: 10, where: "extent", range: "blob-1", extentId: "1", extent: null });
  assert.deepEqual(asked[1], ["fe-2", { account: "acme", container: "c", blob: "b", startBytes: 0n }]);
});

test("places of a blob: what the service says is told, and no other front-end is asked", async () => {
  const { ask, asked } = world({ "fe-1": () => refused("notFound", "conflict", "The specified blob does not exist.") });
  await assert.rejects(ask("/api/blob-places", { ...blob, after: "70" }), /blob does not exist/);
  assert.equal(asked.length, 1);
  await assert.rejects(world({ "fe-1": down, "fe-2": down }).ask("/api/blob-places", blob), /no connection/);
  await assert.rejects(ask("/api/blob-places", { account: "acme" }), /names no container/);
});

test("one extent: as the list has it, none if it is gone, and a number is asked for", async () => {
  const { ask } = world({});
  assert.equal((await ask("/api/extent", { id: "7" })).items[0]?.id, "7");
  assert.deepEqual((await ask("/api/extent", { id: "404" })).items, []);
  for (const id of ["", "0", "-1", "x", "7; drop"]) await assert.rejects(ask("/api/extent", { id }), /number of an extent/, id);
});

test("users of an extent: range after range, each to its end, and what a range lacks is told", async () => {
  const user = (name: string) => ({ account: "acme", container: "c", blob: name, bytes: 9n });
  const range = (rangeId: string, serverAddress = rangeId) => ({ rangeId, serverAddress, table: "Blob" });
  const ranges = [range("blob-3"), range("blob-1"), { ...range("entity-1"), table: "Entity" }, range("blob-2")];
  const { ask, asked } = world(
    {
      "blob-1": ({ fromKey }: { readonly fromKey: Uint8Array }) =>
        fromKey.length === 0
          ? ok({ users: [user("a")], nextKey: Uint8Array.of(1, 255) })
          : ok({ users: [user("b")], nextKey: new Uint8Array(0) }),
      "blob-2": () => ok({ users: [], nextKey: new Uint8Array(0) }),
      "blob-3": () => ok({ users: [user("c")], nextKey: new Uint8Array(0) }),
    },
    ranges,
  );
  const names: unknown[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const page: Awaited<ReturnType<typeof ask>> = await ask("/api/extent-users", { id: "7", after });
    names.push(...page.items.map(({ name, range: of }) => `${name} ${of}`));
    after = page.next;
  }
  assert.deepEqual(names, ["a blob-1", "b blob-1", "c blob-3"]);
  assert.equal(asked.length, 4);
  await assert.rejects(world({}, [range("blob-1", "")]).ask("/api/extent-users", { id: "7" }), /blob-1 has no server now/);
});
