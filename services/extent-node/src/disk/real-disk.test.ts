import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { unwrap } from "@stamp/base";
import { silentLogger, type World } from "@stamp/ports";
import { NodeDisk, nodeWorld } from "@stamp/ports-node";
import { ExtentNode } from "@stamp/wire";
import { extentNodeSchema } from "../config.ts";
import { ExtentNodeRole } from "../extent-node.ts";
import { loopback, serveLock, stampId, timeoutMs, untilReady } from "../testing/real-harness.ts";

test("extent node: three nodes on a real disk over gRPC append, restart, seal and read back", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-extent-node-"));
  const open: ExtentNodeRole[] = [];
  const worlds: World[] = [];
  const closing: (() => Promise<void>)[] = [];
  t.after(async () => {
    for (const role of open) await role.stop();
    for (const close of closing) await close();
    for (const world of worlds) await world.transport.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const makeWorld = (name: string): World => {
    const world = nodeWorld({ dataDir: join(folder, name), name, logger: silentLogger });
    worlds.push(world);
    return world;
  };
  const tester = makeWorld("tester");
  const lock = await serveLock(tester);
  const lockService = lock.address;
  closing.push(async () => void (await lock.close(0)));
  const start = async (name: string): Promise<ExtentNodeRole> => {
    const config = extentNodeSchema.parse({
      name,
      listen: loopback,
      lockService,
      journalSegmentBytes: 8 << 20,
      appendBytesMax: 4 << 20,
      reserveBytes: 0,
      // Large ones go into the file, whatever waits; on one node as many as the journal takes go there.
      inPlaceBehindBytes: name === "en-2" ? 8 << 20 : 0,
      highWaterPercent: 100,
      // A busy machine is no failure.
      appendTimeoutMs: timeoutMs,
    });
    const role = new ExtentNodeRole(makeWorld(name), config);
    await role.start();
    await untilReady(role);
    return role;
  };
  const names = ["en-1", "en-2", "en-3"];
  for (const name of names) open.push(await start(name));
  const replicas = open.map((role, i) => ({ nodeId: names[i] ?? "", address: role.address, diskId: String(role.status.facts.diskId) }));
  const node = (i: number) => tester.transport.client(open[i]?.address ?? "", ExtentNode);
  for (let i = 0; i < 3; i++) {
    unwrap(await node(i).createExtent({ smTerm: 1n, extentId: 1n, ownerEpoch: 1n, version: 1n, replicas, stampId }, { timeoutMs }));
  }

  const payload = (i: number, size: number): Uint8Array => new Uint8Array(size).map((_, at) => (at * 13 + i) & 0xff);
  const places: { offset: bigint; i: number; size: number }[] = [];
  let end = 0;
  const calls: Promise<void>[] = [];
  for (let i = 0; i < 400; i++) {
    const size = i % 8 === 0 ? 500_000 : 1_024;
    const expected = end;
    end += 16 + 4 * Math.ceil(size / 65_536) + size;
    calls.push(
      node(0)
        .append({ extentId: 1n, ownerEpoch: 1n, expectedOffsetBytes: BigInt(expected), payload: [payload(i, size)] }, { timeoutMs })
        .then((outcome) => {
          places.push({ offset: unwrap(outcome).offsetsBytes[0] as bigint, i, size });
        }),
    );
    if (i % 64 === 63) await Promise.all(calls.splice(0));
  }
  await Promise.all(calls);
  assert.equal(places.length, 400);

  await open[1]?.stop();
  open[1] = await start("en-2");
  const diskId = replicas[1]?.diskId ?? "";
  const fence = unwrap(await node(1).fenceExtent({ smTerm: 1n, extentId: 1n, diskId }, { timeoutMs }));
  assert.equal(fence.restarted, true);
  assert.equal(fence.durableBytes, BigInt(end));
  const sums = new Set<number>();
  for (let i = 0; i < 3; i++) {
    const sealed = await node(i).sealExtent(
      { smTerm: 1n, extentId: 1n, sealedLengthBytes: BigInt(end), version: 2n, diskId: replicas[i]?.diskId ?? "" },
      { timeoutMs },
    );
    sums.add(unwrap(sealed).checksum);
  }
  assert.equal(sums.size, 1);
  // Many at once, in an order of their own at each node: the nodes and the caller use memory again while others wait.
  const readAll = async (n: number, reader: number): Promise<void> => {
    for (let at = reader; at < places.length; at += 16) {
      const { offset, i, size } = places[(at * (7 + 2 * n)) % places.length] as (typeof places)[number];
      const read = unwrap(await node(n).read({ extentId: 1n, offsetBytes: offset, lengthBytes: size }, { timeoutMs }));
      assert.equal(Buffer.compare(read.payload, payload(i, size)), 0, `append ${i} at node ${n}`);
      tester.transport.giveBack?.(read.payload);
    }
  };
  await Promise.all([0, 1, 2].flatMap((n) => Array.from({ length: 16 }, (_, reader) => readAll(n, reader))));
});

test("extent node: a journal on a disk of its own is used, found again, and missed when it is not mounted", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-extent-node-"));
  const worlds: World[] = [];
  let role: ExtentNodeRole | undefined;
  const makeWorld = (name: string): World => {
    const world = nodeWorld({ dataDir: join(folder, name), name, logger: silentLogger });
    worlds.push(world);
    return world;
  };
  const tester = makeWorld("tester");
  const lock = await serveLock(tester);
  t.after(async () => {
    await role?.stop();
    await lock.close(0);
    for (const world of worlds) await world.transport.close();
    rmSync(folder, { recursive: true, force: true });
  });
  const mounted = join(folder, "journals", "en-1");
  const start = async (): Promise<ExtentNodeRole> => {
    const settings = {
      name: "en-1",
      listen: loopback,
      lockService: lock.address,
      journalSegmentBytes: 4 << 20,
      appendBytesMax: 2 << 20,
      reserveBytes: 0,
      // Large ones go into the file, whatever waits.
      inPlaceBehindBytes: 0,
    };
    const config = extentNodeSchema.parse({ ...settings, highWaterPercent: 100, appendTimeoutMs: timeoutMs });
    role = new ExtentNodeRole(makeWorld("en-1"), config, { journalDisk: new NodeDisk(mounted) });
    await role.start();
    return role;
  };
  const first = await start();
  await untilReady(first);
  const diskId = String(first.status.facts.diskId);
  const replicas = [{ nodeId: "en-1", address: first.address, diskId }];
  const create = { smTerm: 1n, extentId: 1n, ownerEpoch: 1n, version: 1n, replicas, stampId };
  unwrap(await tester.transport.client(first.address, ExtentNode).createExtent(create, { timeoutMs }));
  const payload = new Uint8Array(300_000).fill(5);
  const append = { extentId: 1n, ownerEpoch: 1n, expectedOffsetBytes: 0n, payload: [payload] };
  const { endBytes } = unwrap(await tester.transport.client(first.address, ExtentNode).append(append, { timeoutMs }));
  await first.stop();
  assert.ok(readdirSync(join(mounted, "journal")).length >= 1);
  assert.ok(!existsSync(join(folder, "en-1", "files", "journal")), "nothing of it on the disk of the extents");

  renameSync(mounted, `${mounted}.unmounted`);
  const without = await start();
  const endMs = performance.now() + 20_000;
  while (without.status.state !== "refusing" && performance.now() < endMs) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.match(without.status.waitingFor.join(), /the journal is gone/);
  await without.stop();
  rmSync(mounted, { recursive: true });
  renameSync(`${mounted}.unmounted`, mounted);

  const again = await start();
  await untilReady(again);
  const fence = { smTerm: 1n, extentId: 1n, diskId };
  const fenced = unwrap(await tester.transport.client(again.address, ExtentNode).fenceExtent(fence, { timeoutMs }));
  assert.equal(fenced.durableBytes, endBytes);
});
