/**
 * Content under a customer's key keeps its place in its write's encryption, wherever the bytes go: over the real stream
 * layer on virtual time.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyBytes } from "@stamp/base";
import { saltBytes } from "@stamp/objects";
import { executeFields, fieldLevel, PartitionManager, PartitionServer } from "@stamp/wire";
import { blobRange, Client, container1, name, stamp } from "../testing/stack-harness.ts";

const servers = { extentTargetBytes: 64 * 1024, pinTermMs: 1, collectGoneMs: 1, collectEveryMs: 86_400_000 };
const pieceBytes = 10_000;
const conditions = { encryptionKeySha256: new Uint8Array(32).fill(9) };

test("encrypted places: rewritten extents and a move to another server leave each with its cipher, and the range is loaded", async () => {
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
        const [place] = await client.write(kind, new Uint8Array(pieceBytes).fill(i));
        places.push({ ...place, cipher: { salt: new Uint8Array(saltBytes).fill(i), offsetBytes: BigInt(piece * pieceBytes) } });
      }
      assert.equal((await client.execute({ ...kind, value: { ...kind.value, body: { inline: emptyBytes, places } } })).case, "blob");
    }
    /** The second half of the content, from its middle on. */
    const read = async (i: number) => {
      const got = await client.execute({ case: "getBlob", value: { ...named(i), conditions, startBytes: 15_000n } });
      assert.ok(got.case === "content", JSON.stringify(got.case === "error" ? got.value.code : got.case));
      return got.value.places;
    };
    const collect = async () => {
      const collected = await manager.collectRange({ rangeId: "blob-1" }, { timeoutMs: 60_000 });
      assert.ok(collected.ok, collected.ok ? "" : collected.failure.message);
      return collected.value.extentsRewritten;
    };
    for (let i = 0; i < 30; i++) if (i % 10 !== 3) await client.execute({ case: "deleteBlob", value: named(i) });
    const old = await Promise.all([3, 13, 23].map(read));
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
    for (const [at, i] of [3, 13, 23].entries()) {
      const places = await read(i);
      const elsewhere = places.map(({ extentId, offsetBytes }) => `${extentId}:${offsetBytes}`);
      assert.notDeepEqual(
        elsewhere,
        old[at]?.map(({ extentId, offsetBytes }) => `${extentId}:${offsetBytes}`),
      );
      assert.deepEqual(
        places.map(({ lengthBytes, cipher }) => [lengthBytes, cipher?.salt[0], cipher?.offsetBytes]),
        [[5_000, i, 15_000n]],
      );
    }
    const other = { encryptionKeySha256: new Uint8Array(32).fill(8) };
    const refused = await client.execute({ case: "getBlob", value: { ...named(3), conditions: other } });
    assert.ok(refused.case === "error" && refused.value.code === "BlobCustomerSpecifiedEncryptionMismatch");
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
