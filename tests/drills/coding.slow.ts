/**
 * Extents that the policy has coded survive the loss of as many disks as the code bears: seven extent nodes, rs-4-2, two killed with SIGKILL and
 * their disks emptied while clients write. Everything that was acknowledged is read back byte for byte, before the repair is over and after
 * it, and then every fragment and replica is whole again. `STAMP_CODE=lrc-12-2-2` does the same with sixteen nodes, of which three are lost.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";
import { BlobClient, CheckingClient, contentOf, startOwn } from "@stamp/drills";
import type { CodingStatus, RepairStatus } from "@stamp/wire";

const mebibyte = 1_024 * 1_024;
const blobs = 16;
const blobBytes = 4 * mebibyte;
const profile = process.env.STAMP_CODE === "lrc-12-2-2" ? ("lrc-12-2-2" as const) : ("rs-4-2" as const);
const code = {
  "rs-4-2": { nodes: 7, fragments: 6, ratioMax: 1.7, lost: ["extent-node-2", "extent-node-5"], readsMin: 4n, readsMax: 4n },
  "lrc-12-2-2": {
    ...{ nodes: 16, fragments: 16, ratioMax: 1.6, lost: ["extent-node-2", "extent-node-5", "extent-node-9"] },
    ...{ readsMin: 6n, readsMax: 12n },
  },
}[profile];
const { lost } = code;
const waitMs = 240_000;

const target = await startOwn(
  {
    extentNodes: code.nodes,
    repairAfterMs: 20_000,
    erasureCoding: { profile, afterSeconds: 2, minBytes: 2 * mebibyte },
    roles: {
      "partition-server": { extentTargetBytes: 12 * mebibyte, collectEveryMs: 1_000, pinTermMs: 2_000 },
      "stream-manager": { deletionGraceMs: 3_000 },
    },
  },
  false,
);
after(() => target.close());
const client = BlobClient.fromConnectionString(target.connectionString, { connectionsMax: 16, timeoutMs: 60_000 });
after(() => client.close());
const { dataDir } = await target.status();

/** Runs a command of the command line on the cluster; the answer of its `--json`. */
async function stamp<T>(...given: readonly string[]): Promise<T> {
  return JSON.parse(await words(...given, "--json")) as T;
}

/** Runs a command of the command line on the cluster; what it says to people. */
async function words(...given: readonly string[]): Promise<string> {
  const args = [resolve(import.meta.dirname, "../../stamp.mjs"), ...given, "--data-dir", dataDir];
  return (await promisify(execFile)(process.execPath, args, { encoding: "utf8", maxBuffer: 1 << 26 })).stdout;
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const startMs = performance.now();
  while (!(await holds())) {
    assert.ok(performance.now() - startMs < waitMs, `${what}: not within ${waitMs} ms`);
    await new Promise((done) => setTimeout(done, 500));
  }
  console.log(`${what}: ${((performance.now() - startMs) / 1_000).toFixed(1)} s`);
}

/** Reads every blob of the beginning, which lie in coded extents. */
async function readAll(when: string): Promise<void> {
  for (let number = 0; number < blobs; number++) {
    const got = await client.get("coded", `b${number}`);
    assert.ok(got.kind === "answer" && got.status === 200, `${when}: b${number}: ${JSON.stringify(got).slice(0, 300)}`);
    assert.ok(got.body.equals(contentOf(`b${number}`, blobBytes)), `${when}: b${number} is another`);
  }
}

const coding = (): Promise<CodingStatus> => target.inspector.ask((manager, timeoutMs) => manager.getCodingStatus({}, { timeoutMs }));
const repair = (): Promise<RepairStatus> => target.inspector.ask((manager, timeoutMs) => manager.getRepairStatus({}, { timeoutMs }));
const extentFiles = (folder: "extents" | "fragments", pattern: string): number =>
  globSync(join(dataDir, "extent-node-*", "files", folder, "**", pattern)).length;

test("coded extents survive as many nodes as the code bears, killed and emptied under writing clients", { timeout: 900_000 }, async () => {
  await client.createContainer("coded");
  for (let number = 0; number < blobs; number++) {
    const put = await client.put("coded", `b${number}`, contentOf(`b${number}`, blobBytes));
    assert.ok(put.kind === "answer" && put.status === 201, JSON.stringify(put));
  }
  // The last extents of the data streams stay open.
  await until("coded by the policy", async () => (await coding()).codedBytes > BigInt((blobs * blobBytes * 5) / 8));
  const replicas = extentFiles("extents", "*.extent");
  await until("replicas of coded extents are deleted", async () => extentFiles("extents", "*.extent") <= replicas - 3);
  const before = await coding();
  const ratio = Number(before.fragmentBytes) / Number(before.codedBytes);
  console.log(
    `${before.codedExtents} extents, ${before.codedBytes} bytes, in ${before.fragmentBytes} bytes of fragments: ${ratio.toFixed(2)}`,
  );
  assert.ok(ratio < code.ratioMax, "that of the code, and the rounding of each fragment to 64 KiB");
  await readAll("coded");

  const writers = new CheckingClient({ client, container: "writers", smallWriters: 2, counters: 1, pauseMs: 20, largePauseMs: 1_000 });
  await writers.start();
  await Promise.all(lost.map((name) => target.ask({ do: "hold", name })));
  for (const name of lost) rmSync(join(dataDir, name), { recursive: true });
  await readAll("nodes are away and emptied");
  for (const name of lost) await target.ask({ do: "start", name });
  await readAll("while fragments are made anew");
  await until("whole again", async () => {
    const { replicasWaiting, replicasInGrace, fragmentsWaiting, fragmentsInGrace, fragmentsUnreachable, fragmentsDone, ...rest } =
      await repair();
    if (rest.fragmentEtaMs !== undefined) console.log(`${rest.fragmentBytesWaiting} bytes left, ${rest.fragmentEtaMs} ms`);
    const left = replicasWaiting + replicasInGrace + fragmentsWaiting + fragmentsInGrace + fragmentsUnreachable;
    return left === 0n && fragmentsDone > 0n && (await coding()).lossesLeft.length === 0;
  });
  const { fragmentBytesDone, fragmentBytesRead } = await repair();
  const reads = `${fragmentBytesRead} bytes read for ${fragmentBytesDone}`;
  assert.ok(fragmentBytesRead >= code.readsMin * fragmentBytesDone && fragmentBytesRead <= code.readsMax * fragmentBytesDone, reads);
  assert.match(await words("coding", "status"), /^done: \d+ fragments since .* in \d+\.\d s, \d+\.\d\d bytes read for a byte$/m);
  await writers.stop(60_000);
  const report = await writers.verify();
  assert.deepEqual(report.broken, []);
  assert.ok(report.small.acknowledged > 20, `${report.small.acknowledged} small writes`);
  await readAll("whole again");
  const checked = await stamp<{ problems: object[]; fragments: number }>("fsck", "--deep");
  assert.deepEqual(checked.problems, []);
  assert.ok(checked.fragments >= code.fragments * Number(before.codedExtents), `${checked.fragments} fragments`);
});

test("stamp coding on a real cluster: status, plan, pause, decode, resume", { timeout: 600_000 }, async () => {
  const status = await stamp<{ profile: string; codedExtents: number; savedBytes: number }>("coding", "status");
  assert.equal(status.profile, profile);
  assert.ok(Number(status.savedBytes) > 0);
  const plan = await stamp<{ extents: { stream: string; why: string }[] }>("coding", "plan");
  const logs = plan.extents.filter(({ stream }) => stream.endsWith("/commit-log"));
  // Of sixteen nodes the three that were lost may have had none.
  assert.ok(logs.every(({ why }) => /commit logs/.test(why)) && (logs.length > 0 || profile === "lrc-12-2-2"));
  assert.ok((await stamp<{ pause?: object }>("coding", "pause", "--note", "a test")).pause !== undefined);
  const extents = await target.inspector.extents();
  const id = extents.find(({ coded, attempt }) => coded !== undefined && attempt === "")?.location?.extentId;
  const shown = await stamp<{ fragments: { state: string }[] }>("extent", "show", String(id));
  assert.deepEqual(
    shown.fragments.map(({ state }) => state),
    Array(code.fragments).fill("intact"),
  );
  const decoded = await stamp<{ intactCopies: number; coded?: object }>("coding", "decode", String(id), "--wait");
  assert.deepEqual([decoded.coded, decoded.intactCopies], [undefined, 3]);
  await readAll("one extent is decoded");
  assert.equal((await stamp<{ pause?: object }>("coding", "resume")).pause, undefined);
});

test("coded extents that are mostly dead are rewritten, and their fragments are deleted", { timeout: 600_000 }, async () => {
  const codedIds = async (): Promise<bigint[]> => {
    const extents = await target.inspector.extents();
    return extents.flatMap(({ coded, location, stream }) =>
      coded !== undefined && stream.endsWith("/blob-data") ? [location?.extentId ?? 0n] : [],
    );
  };
  const before = await codedIds();
  assert.ok(before.length >= 3, `${before.length} coded extents`);
  for (let number = 1; number < blobs; number++) {
    const gone = await client.call("DELETE", `/coded/b${number}`, {});
    assert.ok(gone.kind === "answer" && gone.status === 202, JSON.stringify(gone));
  }
  // Writers of the first test share the streams: an extent that holds their blobs may stay.
  await until("dead extents and their fragments are gone", async () => {
    const after = await codedIds();
    const gone = before.filter((id) => !after.includes(id));
    const named = (id: bigint): string => id.toString(16).padStart(14, "0");
    return gone.length >= 2 && gone.every((id) => extentFiles("fragments", `${named(id)}-*.fragment`) === 0);
  });
  const kept = await client.get("coded", "b0");
  assert.ok(kept.kind === "answer" && kept.status === 200 && kept.body.equals(contentOf("b0", blobBytes)));
  assert.deepEqual((await stamp<{ problems: object[] }>("fsck")).problems, []);
});
