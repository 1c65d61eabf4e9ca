/**
 * Content under a customer's key keeps its place in its write's encryption, wherever the bytes go: over the real stream
 * layer on virtual time.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { concatBytes, emptyBytes, refused } from "@stamp/base";
import { saltBytes, spanOf } from "@stamp/objects";
import { ExtentReader, locationFromWire } from "@stamp/stream-client";
import { executeFields, fieldLevel, PartitionManager, PartitionServer } from "@stamp/wire";
import { blobRange, Client, container1, name, stamp } from "../testing/stack-harness.ts";
import { placeFromWire } from "../wire/operation-from-wire.ts";

const servers = { extentTargetBytes: 64 * 1024, pinTermMs: 1, collectGoneMs: 1, collectEveryMs: 86_400_000 };
const pieceBytes = 10_000;
const conditions = { encryptionKeySha256: new Uint8Array(32).fill(9) };

const withoutUnits = { storedBytes: [pieceBytes, pieceBytes], contentBytes: [pieceBytes, pieceBytes], units: undefined, storedFrom: 5_000 };
/** 20 whole units with their tags, and 19 of which the last is shorter. */
const withUnits = {
  storedBytes: [20 * 528, 18 * 528 + 316],
  contentBytes: [20 * 512, 18 * 512 + 300],
  units: { unitBytes: 512, writeBytes: BigInt(38 * 512 + 300) },
  // Byte 15,000 is in unit 29, the tenth of the second piece.
  storedFrom: 9 * 528,
};
/** Another byte at each place of each blob. */
const bytesOf = (blob: number, length: number, from: number) =>
  Uint8Array.from({ length }, (_, at) => (blob * 7 + (from + at) * 13 + ((from + at) >> 8)) & 0xff);

for (const { storedBytes, contentBytes, units, storedFrom } of [withoutUnits, withUnits])
  test(`encrypted places${units ? " in units" : ""}: rewritten extents and a move leave each with its cipher, and the range is loaded`, async () => {
    const sim = stamp(7, servers);
    await sim.run(async () => {
      await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
      const client = new Client(sim);
      const incarnation = await container1(client);
      const manager = sim.world("operator").transport.client("pm", PartitionManager);
      const named = (i: number) => ({ name: name(`b${i}`, incarnation) });
      for (let i = 0; i < 30; i++) {
        const kind = { case: "putBlob", value: { ...named(i), conditions } };
        const places = [];
        for (let piece = 0; piece < 2; piece++) {
          const [place] = await client.write(kind, bytesOf(i, storedBytes[piece] as number, piece * pieceBytes));
          const offsetBytes = BigInt(piece * (contentBytes[0] as number));
          const cipher = { salt: new Uint8Array(saltBytes).fill(i), offsetBytes, ...(units && { units }) };
          places.push({ ...place, lengthBytes: contentBytes[piece], cipher });
        }
        assert.equal((await client.execute({ ...kind, value: { ...kind.value, body: { inline: emptyBytes, places } } })).case, "blob");
      }
      /** The second half of the content, from its middle on. */
      const read = async (i: number) => {
        const got = await client.execute({ case: "getBlob", value: { ...named(i), conditions, startBytes: 15_000n } });
        assert.ok(got.case === "content", JSON.stringify(got.case === "error" ? got.value.code : got.case));
        return got.value;
      };
      const collect = async () => {
        const collected = await manager.collectRange({ rangeId: "blob-1" }, { timeoutMs: 60_000 });
        assert.ok(collected.ok, collected.ok ? "" : collected.failure.message);
        return collected.value.extentsRewritten;
      };
      for (let i = 0; i < 30; i++) if (i % 10 !== 3) await client.execute({ case: "deleteBlob", value: named(i) });
      const old = (await Promise.all([3, 13, 23].map(read))).map(({ places }) => places);
      let rewritten = 0;
      for (let pass = 0; pass < 3; pass++) {
        rewritten += await collect();
        await sim.sleep(10);
      }
      assert.ok(rewritten > 0, "something was rewritten");
      const { server } = await blobRange(sim);
      const to = server === "ps-1" ? "ps-2" : "ps-1";
      const moved = await manager.movePartition({ rangeId: "blob-1", server: to }, { timeoutMs: 30_000 });
      assert.ok(moved.ok, moved.ok ? "" : moved.failure.message);
      const reader = new ExtentReader(client.world, async () => refused("notFound", "unknownExtent", "it came with the answer"), {
        locationsMax: 10,
      });
      for (const [at, i] of [3, 13, 23].entries()) {
        const { places, extents } = await read(i);
        const elsewhere = places.map(({ extentId, offsetBytes }) => `${extentId}:${offsetBytes}`);
        assert.notDeepEqual(
          elsewhere,
          old[at]?.map(({ extentId, offsetBytes }) => `${extentId}:${offsetBytes}`),
        );
        assert.deepEqual(
          places.map(({ lengthBytes, cipher }) => [lengthBytes, cipher?.salt[0], cipher?.offsetBytes]),
          [[(contentBytes[0] as number) + (contentBytes[1] as number) - 15_000, i, 15_000n]],
        );
        reader.learn(extents.map(locationFromWire));
        const stored: Uint8Array[] = [];
        for await (const chunk of reader.readPlaces(places.map(placeFromWire).map(spanOf))) stored.push(Uint8Array.from(chunk));
        const expected = bytesOf(i, storedBytes[1] as number, pieceBytes).subarray(storedFrom);
        assert.deepEqual(concatBytes(stored), expected, "whole units with their tags");
      }
      const other = { encryptionKeySha256: new Uint8Array(32).fill(8) };
      const denied = await client.execute({ case: "getBlob", value: { ...named(3), conditions: other } });
      assert.ok(denied.case === "error" && denied.value.code === "BlobCustomerSpecifiedEncryptionMismatch");
    });
  });

test("encrypted places: a caller of an older release gets no encrypted bytes as content, and an operation of a newer one is refused", async () => {
  const sim = stamp(8, servers);
  await sim.run(async () => {
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
    const client = new Client(sim);
    const incarnation = await container1(client);
    const named = { name: name("b", incarnation) };
    const scope = { encryptionScope: "s" };
    const kind = { case: "putBlob", value: { ...named, conditions: scope } } as const;
    const [place] = await client.write(kind, new Uint8Array(pieceBytes));
    const places = [{ ...place, cipher: { salt: new Uint8Array(saltBytes), offsetBytes: 0n } }];
    assert.equal((await client.execute({ ...kind, value: { ...kind.value, body: { places } } })).case, "blob");
    await client.execute({ case: "createContainer", value: { account: "devstoreaccount1", container: "d", defaultEncryptionScope: "s" } });

    const { serverAddress, rangeId, rangeVersion } = await blobRange(sim);
    const ask = (request: object) =>
      client.world.transport
        .client(serverAddress, PartitionServer)
        .execute({ rangeId, rangeVersion, ...request } as never, { timeoutMs: 3_000 });
    const operation = { kind: { case: "getBlob", value: named } };
    const older = await ask({ operation });
    assert.ok(!older.ok && older.failure.reason === "newerFormat" && older.failure.applied === "no");
    const properties = await ask({ operation: { kind: { case: "getBlob", value: { ...named, withoutContent: true } } } });
    assert.ok(properties.ok, "what tells no content is answered");
    const container = { kind: { case: "getContainer", value: { account: "devstoreaccount1", container: "d" } } };
    const intoIt = await ask({ operation: container });
    assert.ok(!intoIt.ok && intoIt.failure.reason === "newerFormat", "a front-end that knows no scopes would write into it without one");
    assert.ok((await ask(executeFields(container as never))).ok);

    const put = { kind: { case: "putBlob", value: { ...named, body: { places: [place] } } } };
    const newer = await ask({ demanding: { level: fieldLevel + 1, operation: put } });
    assert.ok(!newer.ok && newer.failure.reason === "newerFormat" && newer.failure.applied === "no");
    const now = await client.execute(operation.kind);
    assert.ok(now.case === "content" && now.value.places[0]?.cipher !== undefined, "it was not replaced");
  });
});
