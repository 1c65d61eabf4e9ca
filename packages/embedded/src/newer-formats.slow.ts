/**
 * A rollback of the release. Every format of a folder (docs/formats/versions.md) is met in a version that this release does not know: in the
 * folder's marker, and in the data of a folder without a marker. Each start is refused and leaves every file as it was.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import { FailureError, type FormatName, formatVersions, frameRecord, fromUtf8, type RuleName, rulesWithout, utf8 } from "@stamp/base";
import { checkDisk, ExtentNodeRole, extentNodeSchema, rebuildDisk } from "@stamp/extent-node";
import { decodeFormatMarker, encodeFormatMarker, type FormatMarker, formatMarkerFile, silentLogger, type World } from "@stamp/ports";
import { InProcessNetwork, NodeDigest, nodeWorld } from "@stamp/ports-node";
import { startStamp } from "./index.ts";
import { plan } from "./plan.ts";

const digest = new NodeDigest();
const crc32c = (bytes: Uint8Array): number => digest.crc32c(bytes);
const node = "extent-node-1";
const lockService = "lock-service-1";
const roles = [lockService, node, "stream-manager-1", "partition-manager-1", "partition-server-1", "front-end-1"];

let filled = "";
// Timers of the ports keep no process alive.
const alive = setInterval(() => {}, 1_000);
before(async () => {
  filled = mkdtempSync(join(tmpdir(), "stamp-newer-"));
  const stamp = await startStamp({ dataDir: filled, replicas: 3, lockServices: 1 });
  const container = BlobServiceClient.fromConnectionString(stamp.connectionString).getContainerClient("kept");
  await container.create();
  await container.getBlockBlobClient("b").uploadData(Buffer.alloc(300_000, "stamp"));
  await stamp.stop();
});
after(() => {
  clearInterval(alive);
  rmSync(filled, { recursive: true, force: true });
});

function files(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  const paths = names.map((each) => join(each.parentPath, each.name)).sort();
  return new Map(paths.map((path) => [path.slice(folder.length + 1), createHash("sha256").update(readFileSync(path)).digest("hex")]));
}

interface Start {
  /** Error that a start of the role threw. */
  readonly said: FailureError | undefined;
  /** Files that are others afterwards. */
  readonly touched: string[];
}

const withoutRules = { off: [] as readonly RuleName[] };

async function onCopyOf<T>(name: string, work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-newer-"));
  try {
    cpSync(join(filled, name), folder, { recursive: true });
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const worldOf = (folder: string, name: string): World =>
  nodeWorld({ dataDir: folder, name, logger: silentLogger, transport: new InProcessNetwork().transport(name), onFatal: () => {} });

async function start(folder: string, name: string, { off } = withoutRules): Promise<Start> {
  const were = files(folder);
  const planned = plan({ init: false, replicas: 1, lockServices: 1, partitionServers: 1, oidc: undefined, copySources: [] });
  const role = planned.find((each) => each.name === name)?.make({ ...worldOf(folder, name), rules: rulesWithout(...off) });
  assert.ok(role !== undefined);
  let said: FailureError | undefined;
  try {
    await role.start();
    for (let i = 0; i < 3_000 && /its disk/.test(role.status.waitingFor.join()); i++) await new Promise((done) => setTimeout(done, 20));
    await role.stop();
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    said = error;
  }
  const are = files(folder);
  return { said, touched: [...new Set([...were.keys(), ...are.keys()])].filter((path) => were.get(path) !== are.get(path)) };
}

/** A start on a copy of the folder of `name`, after `change`. */
const startOn = (name: string, change: (folder: string) => void | Promise<void>, options = withoutRules): Promise<Start> =>
  onCopyOf(name, async (folder) => {
    await change(folder);
    return start(folder, name, options);
  });

const markerOf = (folder: string): string => join(folder, "files", formatMarkerFile);

function markedIn(folder: string): FormatMarker {
  const marker = decodeFormatMarker(new Uint8Array(readFileSync(markerOf(folder))), crc32c);
  assert.ok(marker !== undefined);
  return marker;
}

const mark = (folder: string, marker: FormatMarker): void => writeFileSync(markerOf(folder), encodeFormatMarker(marker, crc32c));

function refusedAs(format: string, outcome: Start): void {
  assert.equal(outcome.said?.failure.reason, "newerFormat", `${format}: ${outcome.said?.message}`);
  assert.match(outcome.said?.message ?? "", new RegExp(`"${format}"`));
  assert.match(outcome.said?.message ?? "", /Start the release that wrote it/);
  assert.deepEqual(outcome.touched, [], format);
}

test("newer formats, the marker of any role names one: the start is refused with the release, no file is touched", async () => {
  const named = new Set<string>();
  for (const name of roles) {
    await onCopyOf(name, async (folder) => {
      const held = markedIn(folder);
      for (const format of Object.keys(held)) {
        named.add(format);
        const version = formatVersions[format as FormatName] + 1;
        mark(folder, { ...held, [format]: { version, release: "7.3.1" } });
        const outcome = await start(folder, name);
        refusedAs(format, outcome);
        assert.match(outcome.said?.message ?? "", new RegExp(`version ${version} .*release 7\\.3\\.1 wrote it.*version ${version - 1}\\.`));
      }
      mark(folder, { ...held, "of-later": { version: 1, release: "7.3.1" } });
      refusedAs("of-later", await start(folder, name));
    });
  }
  // The others lie in streams, in the cluster's folder or in no folder before they are needed: docs/formats/versions.md and their own tests.
  const elsewhere = [
    "fragment",
    "location",
    "partition-metadata",
    "commit-log",
    "checkpoint",
    "row",
    "key",
    "service-properties",
    "partition-map",
    "stamp-folder",
    "cluster-record",
    "consensus",
  ];
  assert.deepEqual([...named, ...elsewhere].sort(), Object.keys(formatVersions).sort());
});

/** Rewrites every file that matches, as a newer release would have. */
function rewrite(folder: string, match: RegExp, change: (view: DataView, bytes: Uint8Array) => void): void {
  let count = 0;
  for (const path of files(folder).keys()) {
    if (!match.test(path)) continue;
    const bytes = new Uint8Array(readFileSync(join(folder, path)));
    change(new DataView(bytes.buffer), bytes);
    writeFileSync(join(folder, path), bytes);
    count += 1;
  }
  assert.ok(count > 0, String(match));
}

const segments = /^files\/journal\/\d+\.segment$/;

function newerSegment(view: DataView, bytes: Uint8Array): void {
  for (const at of [0, 4096]) {
    if (view.getUint32(at, true) === 0) continue;
    view.setUint32(at + 8, formatVersions.journal + 1, true);
    view.setUint32(at + 4, crc32c(bytes.subarray(at + 8, at + 56)), true);
  }
}

const inFiles = {
  journal: (folder: string) => rewrite(folder, segments, newerSegment),
  "node-identity": (folder: string) =>
    rewrite(folder, /^files\/node-identity$/, (view, bytes) => {
      view.setUint32(8, 2, true);
      view.setUint32(4, crc32c(bytes.subarray(8)), true);
    }),
  "scrub-state": (folder: string) => writeFileSync(join(folder, "files", "scrub-state"), '{"format":2,"anything":true}\n'),
  extent: (folder: string) =>
    rewrite(folder, /\.extent$/, (view, bytes) => {
      for (const at of [0, 4096]) {
        if (view.getUint32(at, true) === 0) continue;
        view.setUint16(at + 8, formatVersions.extent + 1, true);
        view.setUint32(at + 4, crc32c(bytes.subarray(at + 8, at + 24 + view.getUint32(at + 12, true))), true);
      }
    }),
  fragment: (folder: string) => {
    // Golden head and table: of another disk, which nobody asks as long as the version is refused.
    const bytes = new Uint8Array(readFileSync(join(import.meta.dirname, "../../../tests/golden/fragment/v1/fragment.bin")));
    const view = new DataView(bytes.buffer);
    view.setUint16(8, formatVersions.fragment + 1, true);
    view.setUint32(4, crc32c(bytes.subarray(8, 4096)), true);
    mkdirSync(join(folder, "files", "fragments", "05"), { recursive: true });
    writeFileSync(join(folder, "files", "fragments", "05", "01000000000005-00000000000003-0d.fragment"), bytes);
  },
};

test("newer formats in the files of an extent node without a marker: refused, no file is touched", async () => {
  for (const [format, change] of Object.entries(inFiles)) {
    const unmarked = (folder: string): void => {
      change(folder);
      rmSync(markerOf(folder));
    };
    refusedAs(format, await startOn(node, unmarked));
    // These files are looked at in any case, also with a marker that an older release left.
    if (format !== "extent" && format !== "fragment") refusedAs(format, await startOn(node, change));
  }
});

test("newer journal segments, one beside older ones: refused, also with acceptJournalLoss; fsck tells it and rebuilds nothing", async () => {
  const one = (folder: string): void => {
    let most = 0;
    rewrite(folder, segments, (view) => {
      most = Math.max(most, view.getUint32(16, true));
    });
    rewrite(folder, segments, (view, bytes) => {
      if (view.getUint32(16, true) === most) newerSegment(view, bytes);
    });
  };
  refusedAs("journal", await startOn(node, one));
  const checked = await startOn(node, async (folder) => {
    one(folder);
    const world = worldOf(folder, node);
    const were = files(folder);
    const { problems } = await checkDisk({ world, nodeId: node }, false);
    assert.deepEqual(
      problems.map(({ kind }) => kind),
      ["newer"],
    );
    const rebuilt = await rebuildDisk({ world, nodeId: node });
    assert.ok(!rebuilt.ok && rebuilt.failure.reason === "newerFormat");
    assert.deepEqual(files(folder), were);
  });
  refusedAs("journal", checked);
  await onCopyOf(node, async (folder) => {
    one(folder);
    const config = extentNodeSchema.parse({ name: node, listen: node, lockService, acceptJournalLoss: "true" });
    const were = files(folder);
    await assert.rejects(new ExtentNodeRole(worldOf(folder, node), config).start(), /newerFormat/);
    assert.deepEqual(files(folder), were);
  });
});

test("newer journal segments with the rule newerFormatsRefused off: the journal is taken for lost and overwritten", async () => {
  const { said, touched } = await startOn(node, inFiles.journal, { off: ["newerFormatsRefused"] });
  assert.equal(said, undefined);
  assert.ok(touched.length > 0);
});

test("newer records in a lock service's store without a marker: refused, no record and no file is another", async () => {
  const records: readonly (readonly [FormatName, string, (held: Uint8Array) => Uint8Array])[] = [
    ["lock-service", "version", (held) => frameRecord(held[0] ?? 0, 2, held.subarray(2, -4), crc32c)],
    ["lock-service", "k/anything", () => frameRecord(0x4b, 2, utf8("12345678value"), crc32c)],
    ["lease", "l/stream-manager", (held) => frameRecord(held[0] ?? 0, 2, held.subarray(2, -4), crc32c)],
    [
      "metadata",
      "k/sm/ids",
      (held) =>
        frameRecord(
          0x4b,
          1,
          Buffer.concat([held.subarray(2, 10), frameRecord(0x49, formatVersions.metadata + 1, utf8("{}"), crc32c)]),
          crc32c,
        ),
    ],
  ];
  for (const [format, key, newer] of records) {
    let store: ReadonlyMap<string, string> | undefined;
    const outcome = await startOn(lockService, async (folder) => {
      const opened = await worldOf(folder, lockService).keyValue.open("metadata");
      assert.ok(opened.kind === "opened");
      const value = newer((await opened.store.get(utf8(key))) ?? new Uint8Array(0));
      await opened.store.batch([{ kind: "put", key: utf8(key), value }], { sync: true });
      await opened.store.close();
      rmSync(markerOf(folder));
      store = files(join(folder, "files"));
    });
    assert.ok(store !== undefined);
    // LevelDB moves its log into a table when it opens; no other file may change.
    const others = outcome.touched.filter((path) => !path.startsWith("stores/metadata/"));
    refusedAs(format, { said: outcome.said, touched: others });
  }
});

test("a marker is made by a start of this release in a folder without one, and is never lowered", async () => {
  assert.ok(roles.every((name) => existsSync(markerOf(join(filled, name)))));
  await startOn(node, async (folder) => {
    rmSync(markerOf(folder));
    const { problems } = await checkDisk({ world: worldOf(folder, node), nodeId: node }, false);
    assert.deepEqual(problems, []);
  }).then(({ said, touched }) => {
    assert.equal(said, undefined);
    assert.ok(touched.includes(`files/${formatMarkerFile}`));
  });
  assert.ok(fromUtf8(new Uint8Array(readFileSync(markerOf(join(filled, node))))).includes('"journal":{"version":3'));
});
