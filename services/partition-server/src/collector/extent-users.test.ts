import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes, emptyBytes, ok, unwrap } from "@stamp/base";
import { blobSchema, encodeKey, encodeRow, type RowEntry } from "@stamp/objects";
import { firstRangeOf } from "@stamp/partition-map";
import { PartitionServer } from "@stamp/wire";
import type { RangeEngine, RowView } from "../operations/engine.ts";
import { blobRange, Client, container1, name, stamp } from "../testing/stack-harness.ts";
import { ExtentUsers, type UsersPage } from "./extent-users.ts";

const servers = { extentTargetBytes: 64 * 1024, collectEveryMs: 86_400_000 };
const bodyBytes = 20_000;

test("extent users: every blob with bytes in an extent is found, in pages, after a move of the range, too", async () => {
  const sim = stamp(1, servers);
  await sim.run(async () => {
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
    const client = new Client(sim);
    const incarnation = await container1(client);
    const expected = new Map<bigint, string[]>();
    for (let at = 10; at < 30; at++) {
      const kind = { case: "putBlob", value: { name: name(`b${at}`, incarnation) } };
      const places = await client.write(kind, new Uint8Array(bodyBytes).fill(at));
      await client.execute({ ...kind, value: { ...kind.value, body: { inline: emptyBytes, places } } });
      for (const extentId of new Set(places.map((place) => place.extentId)))
        expected.set(extentId, [...(expected.get(extentId) ?? []), `b${at}`]);
    }
    await client.execute({ case: "putBlob", value: { name: name("small", incarnation), body: { inline: new Uint8Array(9) } } });
    assert.ok(expected.size > 2, `${expected.size} extents`);
    const { rangeId, serverAddress } = await blobRange(sim);
    const server = sim.world("operator").transport.client(serverAddress, PartitionServer);
    for (const [extentId, blobs] of expected) {
      const page = unwrap(await server.listExtentUsers({ rangeId, extentId, fromKey: emptyBytes }, { timeoutMs: 1_000 }));
      assert.deepEqual(
        page.users.map(({ blob }) => blob),
        blobs,
      );
      assert.ok(page.users.every(({ account, container, bytes }) => account === "devstoreaccount1" && container === "c" && bytes > 0n));
      assert.equal(page.nextKey.length, 0);
    }
    const nobody = unwrap(await server.listExtentUsers({ rangeId, extentId: 999_999n, fromKey: emptyBytes }, { timeoutMs: 1_000 }));
    assert.deepEqual(nobody.users, []);
    const away = await server.listExtentUsers({ rangeId: "blob-99", extentId: 1n, fromKey: emptyBytes }, { timeoutMs: 1_000 });
    assert.equal(away.ok ? "" : away.failure.reason, "wrongPartition");
  });
});

test("extent users: a page ends between blobs, or inside of one that has too many rows, and the next one goes on there", async () => {
  const rows = ["a", "a", "b", "c", "c", "c", "c"].map((blob, at) => ({
    key: encodeKey([["acct"], [1, "con", 3, blob], [3, 1, at]]),
    value: encodeRow(blobSchema, { places: [{ extentId: 7, offsetBytes: 0, lengthBytes: 10 }] }),
  }));
  const view = {
    walk: async (low: Uint8Array, _high: Uint8Array, visit: (row: RowEntry) => Uint8Array | undefined) => {
      for (const row of rows) if (compareBytes(row.key, low) >= 0 && visit(row) === undefined) break;
      return ok();
    },
  };
  let isRead = false;
  const read = async (work: (now: RowView) => unknown) => {
    isRead = true;
    return work(view as unknown as RowView);
  };
  const engine = { mayReferTo: ({ extentId }: { extentId: number }) => extentId === 7, read } as unknown as RangeEngine;
  const range = firstRangeOf("Blob");
  const pagesOf = async (bounds: UsersPage): Promise<string[]> => {
    const pages: string[] = [];
    for (let from: Uint8Array = emptyBytes; ; ) {
      const page = unwrap(await new ExtentUsers(bounds).page({ range, engine }, 7, from));
      pages.push((page.users ?? []).map(({ blob, bytes }) => `${blob} ${bytes}`).join(", "));
      from = page.nextKey ?? emptyBytes;
      if (from.length === 0) return pages;
    }
  };
  assert.deepEqual(await pagesOf({ users: 200, rows: 100, rowsMax: 100 }), ["a 20, b 10, c 40"]);
  assert.deepEqual(await pagesOf({ users: 2, rows: 100, rowsMax: 100 }), ["a 20, b 10", "c 40"]);
  assert.deepEqual(await pagesOf({ users: 200, rows: 1, rowsMax: 3 }), ["a 20", "b 10", "c 30", "c 10"]);
  isRead = false;
  assert.deepEqual(unwrap(await new ExtentUsers().page({ range, engine }, 8, emptyBytes)).users, []);
  assert.equal(isRead, false, "rows of another extent are not read");
});
