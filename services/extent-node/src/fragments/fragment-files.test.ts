/** Fragments on a simulated disk: made, read, verified, deleted; crashes, rot and a full disk. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { extentId, extentVersion, type Outcome, type RuleName, rulesWithout, unwrap } from "@stamp/base";
import { type FragmentSpec, fragmentChunkBytes, fragmentContentOffset, fragmentHeadBytes } from "@stamp/extent";
import { DiskError, formatMarkerFile } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { DiskQueue, repairIo, scrubIo } from "../disk/disk-queue.ts";
import { ExtentFiles } from "../disk/extent-files.ts";
import { DeletedVersions } from "./deleted-versions.ts";
import { FragmentFiles } from "./fragment-files.ts";
import { fragmentNameOf, fragmentPath } from "./fragment-paths.ts";

const identity = { stampId: "stamp", diskId: "disk" };
const fragmentBytes = 3 * fragmentChunkBytes;
const spec: FragmentSpec = {
  extentId: extentId(0x1234),
  version: extentVersion(7),
  index: 4,
  profile: "rs-4-2",
  sealedLengthBytes: 4 * fragmentBytes - 5,
  fragmentBytes,
  contentChecksum: 0xfeedbeef,
};
const content = (seed: number): Uint8Array => new Uint8Array(fragmentBytes).map((_, i) => (i * 31 + (i >> 9) + seed) & 0xff);

function open(sim: Simulation): Promise<FragmentFiles> {
  const world = sim.world("p");
  const queue = new DiskQueue(world);
  return FragmentFiles.open(world, new ExtentFiles(world, queue, 8, identity), queue, identity);
}

async function make(files: FragmentFiles, of: FragmentSpec, bytes: Uint8Array): Promise<Outcome<void>> {
  const writer = await files.begin(of, "");
  if (!writer.ok) return writer;
  for (let at = 0; at < bytes.length; at += fragmentChunkBytes) {
    const appended = await writer.value.append(bytes.subarray(at, at + fragmentChunkBytes));
    if (!appended.ok) return appended;
  }
  return writer.value.finish();
}

function inSimulation(seed: number, body: (sim: Simulation) => Promise<void>, options: { off?: RuleName[]; disk?: object } = {}) {
  const sim = new Simulation({ seed, rules: rulesWithout(...(options.off ?? [])), ...(options.disk && { disk: options.disk }) });
  return sim.run(() => body(sim));
}

const reason = (outcome: Outcome<unknown>): string => (outcome.ok ? "ok" : outcome.failure.reason);

test("fragments: what was made is read back in any range, also after a restart; its name says which it is", () =>
  inSimulation(1, async (sim) => {
    let files = await open(sim);
    unwrap(await make(files, spec, content(1)));
    unwrap(await make(files, { ...spec, version: extentVersion(9), index: 0 }, content(2)));
    for (const restarted of [false, true]) {
      if (restarted) {
        sim.crash("p", { unsynced: "lost" });
        sim.restart("p");
        files = await open(sim);
      }
      assert.equal(files.count, 2);
      assert.deepEqual([...files.names()].map(({ version, index }) => [version, index]).sort(), [
        [7, 4],
        [9, 0],
      ]);
      for (const [at, length] of [
        [0, fragmentBytes],
        [fragmentChunkBytes - 3, 7],
        [fragmentBytes - 1, 1],
        [70_000, 100_000],
      ] as const)
        assert.deepEqual(unwrap(await files.read(spec, at, length, repairIo)), content(1).subarray(at, at + length));
      for (const [at, length] of [
        [0, 0],
        [fragmentBytes, 1],
        [1, fragmentBytes],
      ] as const)
        assert.equal(reason(await files.read(spec, at, length, repairIo)), "badRequest");
      const { contentChecksum, profile, sealedLengthBytes } = unwrap(await files.head(spec, repairIo));
      assert.deepEqual(
        { contentChecksum, profile, sealedLengthBytes },
        {
          contentChecksum: spec.contentChecksum,
          profile: spec.profile,
          sealedLengthBytes: spec.sealedLengthBytes,
        },
      );
      assert.deepEqual(await files.verify(spec, scrubIo), { kind: "intact", bytes: fragmentBytes });
    }
    assert.equal(reason(await files.read({ ...spec, index: 3 }, 0, 1, repairIo)), "unknownExtent");
    assert.equal(reason(await files.read({ ...spec, version: extentVersion(8) }, 0, 1, repairIo)), "unknownExtent");
    assert.deepEqual(fragmentNameOf(fragmentPath(spec)), { extentId: spec.extentId, version: spec.version, index: spec.index });
    assert.equal(fragmentNameOf(fragmentPath(spec).replace("34/", "35/")), undefined);
  }));

test("fragments: one that was finished is whole after any power loss; one that was not is gone", async () => {
  let unfinished = 0;
  for (let seed = 0; seed < 40; seed++) {
    await inSimulation(seed, async (sim) => {
      let files = await open(sim);
      let finished = false;
      sim.background(
        (async () => {
          unwrap(await make(files, spec, content(seed)));
          finished = true;
        })(),
      );
      // Seeds below 20 lose power anywhere in the making, the others behind it.
      if (seed < 20) await sim.sleep(sim.prng.below(12));
      else await sim.until(() => finished, 10_000, "the fragment is made");
      const was = finished;
      sim.crash("p", { unsynced: "lost" });
      sim.restart("p");
      files = await open(sim);
      if (!was) unfinished += 1;
      // One whose name was not synced may be there as well: then it is whole.
      if (was) assert.equal(files.count, 1);
      if (files.count === 1) assert.deepEqual(unwrap(await files.read(spec, 0, fragmentBytes, repairIo)), content(seed));
      assert.deepEqual(
        sim
          .disk("p")
          .paths()
          .filter((path) => path.endsWith(".making")),
        [],
      );
      if (files.count === 0) unwrap(await make(files, spec, content(seed)));
    });
  }
  assert.ok(unfinished > 0, "a seed lost power in the making");
});

test("fragments, rule fragmentSynced: without it a fragment that was acknowledged is lost with the power", async () => {
  let hurt = 0;
  for (let seed = 0; seed < 20; seed++) {
    await inSimulation(
      seed,
      async (sim) => {
        unwrap(await make(await open(sim), spec, content(seed)));
        sim.crash("p", { unsynced: "lost" });
        sim.restart("p");
        const verified = await (await open(sim)).verify(spec, scrubIo);
        if (verified?.kind !== "intact") hurt += 1;
      },
      { off: ["fragmentSynced"] },
    );
  }
  assert.ok(hurt > 0);
});

test("fragments, rule fragmentWrittenOnce: a second one of a version is refused; without it, it replaces what was verified", async () => {
  for (const off of [[], ["fragmentWrittenOnce"]] as RuleName[][]) {
    await inSimulation(
      3,
      async (sim) => {
        const files = await open(sim);
        // Two makers of one attempt: the one with the bad replica is late.
        const late = { ...spec, index: 4 };
        unwrap(await make(files, spec, content(1)));
        const second = await make(files, late, content(2));
        assert.equal(reason(second), off.length === 0 ? "conflict" : "ok");
        assert.deepEqual(unwrap(await files.read(spec, 0, fragmentBytes, repairIo)), content(off.length === 0 ? 1 : 2));
        if (off.length === 0) assert.equal(reason(await make(files, { ...spec, index: 2 }, content(2))), "conflict");
      },
      { off },
    );
  }
});

test("fragments: of two makers at once one finishes, the other is refused; nothing is left of it", () =>
  inSimulation(4, async (sim) => {
    const files = await open(sim);
    const first = unwrap(await files.begin(spec, ""));
    unwrap(await first.append(content(1).subarray(0, fragmentChunkBytes)));
    const second = unwrap(await files.begin(spec, ""));
    assert.equal(reason(await first.append(content(1).subarray(fragmentChunkBytes))), "conflict");
    assert.equal(reason(await first.finish()), "conflict");
    assert.equal(reason(await second.finish()), "badRequest");
    assert.equal(reason(await second.append(new Uint8Array(100))), "badRequest");
    assert.equal(reason(await second.append(new Uint8Array(fragmentBytes + fragmentChunkBytes))), "badRequest");
    unwrap(await second.append(content(2)));
    // Another index of the same version, at the same time: only one gets its name.
    const other = { ...spec, index: 1 };
    const third = unwrap(await files.begin(other, ""));
    unwrap(await third.append(content(3)));
    const finished = await Promise.all([second.finish(), third.finish()]);
    assert.deepEqual(finished.map(reason), ["ok", "conflict"]);
    assert.deepEqual(
      files.of(spec.extentId).map(({ index }) => index),
      [spec.index],
    );
    assert.deepEqual(
      sim
        .disk("p")
        .paths()
        .filter((path) => path.startsWith("fragments/")),
      [fragmentPath(spec)],
    );
  }));

test("fragments: a flipped byte anywhere is never served; the other chunks of the fragment still are", () =>
  inSimulation(5, async (sim) => {
    const path = fragmentPath(spec);
    const contentAt = fragmentContentOffset(fragmentBytes);
    let files = await open(sim);
    unwrap(await make(files, spec, content(1)));
    const reopen = async (): Promise<void> => {
      files = await open(sim);
    };
    sim.disk("p").corrupt(path, contentAt + fragmentChunkBytes + 5);
    assert.equal(reason(await files.read(spec, fragmentChunkBytes - 10, 20, repairIo)), "damaged");
    assert.match(files.damageOf(spec)?.why ?? "", /chunk 1/);
    assert.equal(files.damageOf(spec)?.chunksReadable, true);
    assert.deepEqual(unwrap(await files.read(spec, 0, 10, repairIo)), content(1).subarray(0, 10));
    assert.match(JSON.stringify(await files.verify(spec, scrubIo)), /bad.*chunk 1/);
    sim.disk("p").corrupt(path, contentAt + fragmentChunkBytes + 5);
    for (const at of [0, 5, 9, 40, 4_000, 4_096, 4_100, 8_191]) {
      sim.disk("p").corrupt(path, at);
      await reopen();
      assert.equal(reason(await files.read(spec, 0, 10, repairIo)), "damaged", `byte ${at}`);
      assert.equal(files.damageOf(spec)?.chunksReadable, false, `byte ${at}`);
      sim.disk("p").corrupt(path, at);
    }
    await reopen();
    assert.deepEqual(await files.verify(spec, scrubIo), { kind: "intact", bytes: fragmentBytes });
    await reopen();
    sim.disk("p").lose(path);
    assert.equal((await files.verify(spec, scrubIo))?.kind, "bad");
    assert.equal(files.damageOf(spec)?.chunksReadable, false, "the file is gone");
  }));

test("fragments: a file under the name of another fragment, or of another disk, is damaged, never served", () =>
  inSimulation(6, async (sim) => {
    let files = await open(sim);
    unwrap(await make(files, spec, content(1)));
    const wrong = { ...spec, extentId: extentId(0x2234) };
    await sim.world("p").disk.rename(fragmentPath(spec), fragmentPath(wrong));
    files = await open(sim);
    assert.match(JSON.stringify(await files.verify(wrong, scrubIo)), /its file is that of fragment 4 of extent 4660/);
    const world = sim.world("p");
    await world.disk.rename(fragmentPath(wrong), fragmentPath(spec));
    const queue = new DiskQueue(world);
    const other = { stampId: "stamp", diskId: "another" };
    const elsewhere = await FragmentFiles.open(world, new ExtentFiles(world, queue, 8, other), queue, other);
    assert.equal(reason(await elsewhere.read(spec, 0, 1, repairIo)), "damaged");
  }));

test("fragments: a deletion names one version; it takes what is in the making too, and comes again without harm", () =>
  inSimulation(7, async (sim) => {
    let files = await open(sim);
    const newer = { ...spec, version: extentVersion(9) };
    unwrap(await make(files, spec, content(1)));
    unwrap(await make(files, newer, content(2)));
    const making = unwrap(await files.begin({ ...spec, version: extentVersion(8) }, ""));
    assert.equal(await files.remove(spec.extentId, 7), true);
    assert.equal(await files.remove(spec.extentId, 7), false);
    assert.equal(await files.remove(spec.extentId, 8), false);
    assert.equal(reason(await making.append(content(3))), "conflict");
    sim.crash("p", { unsynced: "lost" });
    sim.restart("p");
    files = await open(sim);
    assert.deepEqual(
      files.of(spec.extentId).map(({ version }) => version),
      [9],
    );
    assert.deepEqual(unwrap(await files.read(newer, 0, fragmentBytes, repairIo)), content(2));
  }));

test("fragments: a deletion for one creation leaves a fragment of another, takes one whose head rotted, and waits for a disk that tells nothing", () =>
  inSimulation(17, async (sim) => {
    const files = await open(sim);
    const disk = sim.disk("p");
    const [own, other] = [9, 5];
    const faults = {
      nothing: () => {},
      "its head": (path: string) => disk.corrupt(path, 20),
      "its table": (path: string) => disk.corrupt(path, fragmentHeadBytes + 5),
      "its file": (path: string) => disk.lose(path),
      "its disk": (path: string) => disk.failNext("read", "io", path),
    };
    const went: Record<string, boolean[]> = {};
    for (const [what, strike] of Object.entries(faults)) {
      const held = { ...spec, creation: own };
      went[what] = [];
      for (const creation of [other, own]) {
        const made = { ...held, version: extentVersion(10 + 2 * Object.keys(went).length + went[what].length) };
        unwrap(await make(files, made, content(1)));
        strike(fragmentPath(made));
        went[what].push(await files.remove(made.extentId, made.version, creation));
      }
    }
    assert.deepEqual(went, {
      nothing: [false, true],
      "its head": [true, true],
      "its table": [false, true],
      "its file": [true, true],
      "its disk": [false, false],
    });
  }));

test("fragments: pieces that arrive after the deletion of their version make nothing; another version is made", () =>
  inSimulation(8, async (sim) => {
    const files = await open(sim);
    const late = unwrap(await files.begin(spec, "slow"));
    assert.equal(await files.remove(spec.extentId, spec.version), false);
    assert.equal(reason(await late.append(content(1))), "conflict");
    assert.equal(reason(await files.begin(spec, "slow")), "conflict");
    assert.deepEqual(
      [
        files.count,
        sim
          .disk("p")
          .paths()
          .filter((path) => path.startsWith("fragments/")),
      ],
      [0, []],
    );
    unwrap(await make(files, { ...spec, version: extentVersion(8) }, content(2)));
    assert.equal(files.count, 1);
  }));

test("fragments: of many deleted versions the latest are remembered", () => {
  const deleted = new DeletedVersions(3);
  for (const version of [1, 2, 3, 1, 4]) deleted.add(spec.extentId, version);
  assert.deepEqual(
    [1, 2, 3, 4].map((version) => deleted.has(spec.extentId, version)),
    [true, false, true, true],
  );
});

test("fragments: a disk without room for all of it refuses at once, and nothing is left", () =>
  inSimulation(
    8,
    async (sim) => {
      const files = await open(sim);
      await assert.rejects(files.begin(spec, ""), (error: unknown) => error instanceof DiskError && error.kind === "full");
      assert.deepEqual(
        sim
          .disk("p")
          .paths()
          .filter((path) => path.startsWith("fragments/")),
        [],
      );
      const small = { ...spec, fragmentBytes: fragmentChunkBytes };
      unwrap(await make(files, small, content(1).subarray(0, fragmentChunkBytes)));
    },
    { disk: { totalBytes: 150_000 } },
  ));

test("fragments: the marker names the format before the first file of it, and not before", () =>
  inSimulation(9, async (sim) => {
    const files = await open(sim);
    const { disk } = sim.world("p");
    assert.equal(await disk.exists(formatMarkerFile), false);
    const marked = async (): Promise<string> => new TextDecoder().decode(await disk.readWhole(formatMarkerFile));
    const begun = files.begin(spec, "");
    await begun;
    assert.match(await marked(), /"fragment":\{"version":1/, "a release before creation numbers reads it");
    await files.begin({ ...spec, version: extentVersion(8), creation: 7 }, "");
    assert.match(await marked(), /"fragment":\{"version":2/);
  }));
