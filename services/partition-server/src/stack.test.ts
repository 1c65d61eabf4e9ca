/** The partition layer over the real stream layer, every role on virtual time: cold start, objects of all kinds, and loss of any one process. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes, fromUtf8, utf8 } from "@stamp/base";
import { ExtentNodeRole, extentNodeSchema } from "@stamp/extent-node";
import { LockServiceRole, lockServiceSchema } from "@stamp/lock-service";
import { routeOf } from "@stamp/objects";
import { PartitionManagerRole, partitionManagerConfigSchema } from "@stamp/partition-manager";
import type { World } from "@stamp/ports";
import { Simulation } from "@stamp/simulator";
import { StreamManagerRole, streamManagerSchema } from "@stamp/stream-manager";
import { type OperationResult, PartitionManager, PartitionServer, type Place, type RangePartition } from "@stamp/wire";
import { partitionServerConfigSchema } from "./config.ts";
import { PartitionServerRole } from "./partition-server.ts";

function stamp(seed: number): Simulation {
  const sim = new Simulation({ seed });
  const of = (name: string) => ({ name, listen: name, lockService: "lock", dataDir: "data" });
  const restart = { restartAfterMs: 800 };
  sim.addProcess("lock", (world) => new LockServiceRole(world, lockServiceSchema.parse({ ...of("lock"), init: true })), restart);
  sim.addProcess("sm", (world) => new StreamManagerRole(world, streamManagerSchema.parse(of("sm"))), restart);
  for (const name of ["en-1", "en-2", "en-3", "en-4"]) {
    sim.addProcess(name, (world) => new ExtentNodeRole(world, extentNodeSchema.parse(of(name))), restart);
  }
  for (const name of ["ps-1", "ps-2"]) {
    sim.addProcess(name, (world) => new PartitionServerRole(world, partitionServerConfigSchema.parse(of(name))), restart);
  }
  sim.addProcess("pm", (world) => new PartitionManagerRole(world, partitionManagerConfigSchema.parse(of("pm"))), restart);
  return sim;
}

class Client {
  readonly world: World;
  #ranges: readonly RangePartition[] = [];

  constructor(sim: Simulation) {
    this.world = sim.world("client");
  }

  async #range(kind: object): Promise<RangePartition | undefined> {
    const route = routeOf(this.world.rules, kind as never);
    const map = await this.world.transport.client("pm", PartitionManager).getMap({}, { timeoutMs: 500 });
    if (map.ok) this.#ranges = map.value.ranges;
    return this.#ranges.find(
      (one) =>
        one.table === route.table &&
        compareBytes(one.lowKey, route.key) <= 0 &&
        (one.highKey.length === 0 || compareBytes(route.key, one.highKey) < 0),
    );
  }

  /** Until it is answered; only for what may be done twice. */
  async execute(kind: object): Promise<OperationResult["kind"]> {
    const endMs = this.world.clock.monotonicMs() + 30_000;
    for (;;) {
      const range = await this.#range(kind);
      if (range && range.serverAddress !== "") {
        const request = { rangeId: range.rangeId, rangeVersion: range.rangeVersion, operation: { kind: kind as never } };
        const answer = await this.world.transport.client(range.serverAddress, PartitionServer).execute(request, { timeoutMs: 3_000 });
        if (answer.ok && answer.value.result) return answer.value.result.kind;
      }
      assert.ok(
        this.world.clock.monotonicMs() < endMs,
        `no answer within 30 s to ${JSON.stringify(kind, (_, v) => (typeof v === "bigint" ? Number(v) : v))}`,
      );
      await new Promise<void>((resolve) => void this.world.clock.after(50, resolve));
    }
  }

  async write(kind: object, payload: Uint8Array): Promise<readonly Place[]> {
    const range = (await this.#range(kind)) as RangePartition;
    const request = { rangeId: range.rangeId, rangeVersion: range.rangeVersion, payload };
    const answer = await this.world.transport.client(range.serverAddress, PartitionServer).writeData(request, { timeoutMs: 3_000 });
    assert.ok(answer.ok, answer.ok ? "" : answer.failure.message);
    return answer.value.places;
  }
}

const name = (blob: string, containerIncarnation: bigint) => ({ account: "devstoreaccount1", container: "c", containerIncarnation, blob });
const container = { account: "devstoreaccount1", container: "c" };

async function container1(client: Client): Promise<bigint> {
  const made = await client.execute({ case: "createContainer", value: container });
  if (made.case === "container") return made.value.incarnation;
  const held = await client.execute({ case: "getContainer", value: container });
  assert.ok(held.case === "container", String(held.case));
  return held.value.incarnation;
}

test("stack: from nothing to an account, a container, blobs, blocks and a listing", async () => {
  const sim = stamp(1);
  await sim.run(async () => {
    const client = new Client(sim);
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, `ready: ${JSON.stringify(sim.role("pm")?.status)}`);
    const account = await client.execute({ case: "getAccount", value: { account: "devstoreaccount1" } });
    assert.ok(account.case === "account" && account.value.keys.length === 1);
    const inc = await container1(client);
    const put = await client.execute({ case: "putBlob", value: { name: name("a", inc), body: { inline: utf8("hello") } } });
    assert.equal(put.case, "blob");
    const got = await client.execute({ case: "getBlob", value: { name: name("a", inc) } });
    assert.ok(got.case === "content" && fromUtf8(got.value.inline) === "hello" && got.value.blob?.etag === put.value.etag);

    const blockName = name("dir/b", inc);
    const blockIds = ["01", "02", "03"].map(utf8);
    for (const blockId of blockIds) {
      const places = await client.write({ case: "putBlob", value: { name: blockName } }, new Uint8Array(10_000).fill(blockId[1] as number));
      const staged = await client.execute({
        case: "putBlock",
        value: { name: blockName, blockId, body: { inline: new Uint8Array(0), places } },
      });
      assert.equal(staged.case, "done");
    }
    const blocks = blockIds.toReversed().map((blockId) => ({ blockId, source: 3 }));
    const committed = await client.execute({ case: "putBlockList", value: { name: blockName, blocks, metadata: { k: "v" } } });
    assert.ok(committed.case === "blob" && committed.value.contentLengthBytes === 30_000n, String(committed.case));
    const content = await client.execute({ case: "getBlob", value: { name: blockName, startBytes: 5_000n, endBytes: 25_000n } });
    assert.ok(content.case === "content" && content.value.lengthBytes === 20_000n);
    assert.deepEqual(
      content.value.places.map((place) => place.lengthBytes),
      [5_000, 10_000, 5_000],
    );
    assert.ok(content.value.extents.length >= 1 && content.value.extents.every((extent) => extent.addresses.length === 3));

    const listed = await client.execute({
      case: "listBlobs",
      value: { ...container, containerIncarnation: inc, prefix: "", marker: "", delimiter: "/" },
    });
    assert.ok(listed.case === "blobs");
    assert.deepEqual(
      listed.value.entries.map((entry) => (entry.kind.case === "prefix" ? entry.kind.value : entry.kind.value?.name)),
      ["a", "dir/"],
    );
    const deleted = await client.execute({ case: "deleteContainer", value: container });
    assert.equal(deleted.case, "done");
    const again = await container1(client);
    const gone = await client.execute({ case: "getBlob", value: { name: name("a", again) } });
    assert.ok(gone.case === "error" && gone.value.code === "BlobNotFound");
  });
});

for (const victim of ["ps-1", "ps-2", "pm", "sm", "lock", "en-1", "everything"]) {
  test(`stack: what was acknowledged is there after the loss of ${victim}`, async () => {
    const sim = stamp(victim.length * 7);
    await sim.run(async () => {
      const client = new Client(sim);
      await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
      const inc = await container1(client);
      const etags = new Map<string, string>();
      for (let i = 0; i < 30; i++) {
        if (i === 10) for (const one of victim === "everything" ? sim.processNames : [victim]) if (one !== "client") sim.crash(one);
        const put = await client.execute({ case: "putBlob", value: { name: name(`b${i}`, inc), body: { inline: utf8(`value ${i}`) } } });
        assert.ok(put.case === "blob");
        etags.set(`b${i}`, put.value.etag);
      }
      for (const [blob, etag] of etags) {
        const got = await client.execute({ case: "getBlob", value: { name: name(blob, inc) } });
        assert.ok(got.case === "content" && got.value.blob?.etag === etag, `${blob}: ${JSON.stringify(got.case)}`);
        assert.equal(fromUtf8(got.value.inline), `value ${blob.slice(1)}`);
      }
    });
  });
}

for (const [title, stayDown, limitMs] of [
  ["started again", false, 3_000],
  ["staying dead", true, 8_000],
] as const) {
  test(`stack: a killed partition server ${title}: its ranges are served again within ${limitMs} ms`, async () => {
    const sim = stamp(11);
    await sim.run(async () => {
      const client = new Client(sim);
      await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
      const inc = await container1(client);
      await sim.sleep(8_000);
      const kind = { case: "putBlob", value: { name: name("x", inc), body: { inline: utf8("x") } } };
      for (const server of ["ps-1", "ps-2"]) {
        sim.crash(server, { stayDown, unsynced: "kept", silent: false });
        const fromMs = sim.nowMs;
        assert.equal((await client.execute(kind)).case, "blob");
        assert.ok(sim.nowMs - fromMs < limitMs, `${server}: ${sim.nowMs - fromMs} ms`);
        if (stayDown) sim.restart(server);
        await sim.sleep(12_000);
      }
    });
  });
}
