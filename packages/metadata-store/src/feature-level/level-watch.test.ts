/** A process notes the level that it is told in its folder before it uses it, keeps it, and ends if it is too high. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, FailureError, featureLevel, formatVersions, neededLevels, type Outcome, ok, refused, rulesWithout } from "@stamp/base";
import { claimFolder, decodeFormatMarker, encodeFormatMarker, formatMarkerFile, raiseFormats, type World } from "@stamp/ports";
import { type AnnounceRequest, LockService } from "@stamp/wire";
import { LevelWatch } from "./level-watch.ts";

const crc32c = (bytes: Uint8Array): number => bytes.reduce((total, byte) => (total * 31 + byte) >>> 0, 7);

/** A folder in memory, a leader that answers with `answer`, and a clock whose waits are over at once. */
function processWith(answer: () => Outcome<{ level: number }>) {
  const files = new Map<string, Uint8Array>();
  const announced: AnnounceRequest[] = [];
  const fatal: string[] = [];
  const writes: number[] = [];
  let watch: LevelWatch | undefined;
  const disk = {
    readWhole: async (path: string) => files.get(path),
    writeAtomically: async (path: string, content: Uint8Array) => {
      writes.push(watch?.level ?? -1);
      files.set(path, content);
    },
  };
  const leader = {
    announce: async (request: AnnounceRequest) => {
      announced.push(request);
      return answer();
    },
  };
  const lease = { getLease: async () => ok({ leaseEpoch: 1n, ended: false, address: "sm" }) };
  const world = {
    disk,
    digest: { crc32c },
    rules: allRules,
    random: { float: () => 0.5 },
    clock: {
      monotonicMs: () => performance.now(),
      after: (_ms: number, work: () => void) => {
        const timer = setTimeout(work, 1);
        return { cancel: () => clearTimeout(timer) };
      },
    },
    logger: { info: () => {}, warn: () => {}, error: () => {} },
    transport: { client: (_address: string, service: unknown) => (service === LockService ? lease : leader) },
    fatal: (reason: string) => void fatal.push(reason),
  } as unknown as World;
  watch = new LevelWatch(world);
  const marker = () => decodeFormatMarker(files.get(formatMarkerFile) ?? new Uint8Array(0), crc32c) ?? {};
  const start = () => watch.start({ lockService: "lock", role: "front-end", name: "front-end-1", incarnation: 3 });
  return { files, announced, fatal, writes, world, watch, marker, start };
}

async function until(holds: () => boolean): Promise<void> {
  for (let i = 0; !holds(); i++) {
    assert.ok(i < 2_000);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

test("level watch: announces what the process reads, and notes a level in the folder before it goes by it", async () => {
  let level = 0;
  const { announced, watch, marker, start, world, writes } = processWith(() => ok({ level }));
  await claimFolder(world, ["journal"]);
  await start();
  await until(() => watch.level === 0);
  assert.equal(watch.allows(1), false);
  assert.equal(marker()["feature-level"], undefined, "at level 0 the release before can start here");
  const [first] = announced;
  assert.deepEqual([first?.role, first?.name, first?.incarnation], ["front-end", "front-end-1", 3n]);
  assert.deepEqual([first?.versions?.featureLevel, first?.versions?.formats.journal], [featureLevel, formatVersions.journal]);
  level = 1;
  await until(() => watch.level === 1);
  assert.equal(watch.allows(1), true);
  assert.equal(marker()["feature-level"]?.version, 1);
  assert.deepEqual(writes, [-1, 0], "written while the level was still the one before");
  await until(() => announced.at(-1)?.versions?.levelInUse === 1);
  await watch.stop();
});

test("level watch: a level that was noted holds at the next start, before anybody answers, and when the stamp tells a lower one", async () => {
  let answer: Outcome<{ level: number }> = refused("unavailable", "unknownMethod", "a stream manager of the release before");
  const { announced, files, watch, start } = processWith(() => answer);
  files.set(formatMarkerFile, encodeFormatMarker({ "feature-level": { version: 1, release: "0.1.0" } }, crc32c));
  await start();
  assert.equal(watch.level, 1);
  await until(() => announced.length > 1);
  answer = ok({ level: 0 });
  await until(() => announced.length > 4);
  assert.equal(watch.level, 1);
  await watch.stop();
});

test("level watch: a level above that of the release ends the process, and nothing is noted", async () => {
  const { fatal, files, watch, start } = processWith(() => ok({ level: featureLevel + 1 }));
  await start();
  await until(() => fatal.length > 0);
  const why = `version ${featureLevel + 1} of the format "feature-level".*a newer release wrote it.*Start the release that wrote it`;
  assert.match(fatal[0] ?? "", new RegExp(why));
  assert.equal(files.size, 0);
  assert.equal(watch.level, undefined);
});

test("level watch: with the rule formatsAwaitTheirLevel off a process writes what its level does not allow", () => {
  const { world } = processWith(() => ok({ level: 0 }));
  assert.equal(new LevelWatch({ ...world, rules: rulesWithout("formatsAwaitTheirLevel") }).allows(1), true);
});

test("marker: a version that a level brings is named at that level only, so that the release before starts again until then", async () => {
  const { watch, marker, start, world } = processWith(() => ok({ level: neededLevels.fragmentChecksums }));
  await claimFolder(world, ["metadata"]);
  assert.equal(marker().metadata?.version, 4);
  await start();
  await until(() => watch.level === neededLevels.fragmentChecksums);
  await watch.stop();
  assert.equal(marker().metadata?.version, 5);
});

test("marker: the release before refuses a folder that was used under a level; a level and a format that are noted at once are both kept", async () => {
  const { watch, marker, start, world } = processWith(() => ok({ level: 1 }));
  await claimFolder(world, ["journal"]);
  await start();
  await Promise.all([
    until(() => watch.level === 1),
    ...["fragment", "extent"].map((format) => raiseFormats(world, [format as "extent"], 1)),
  ]);
  await watch.stop();
  assert.deepEqual(
    ["extent", "feature-level", "fragment", "journal"].map((format) => marker()[format]?.version),
    [1, 1, 1, formatVersions.journal],
  );
  // The level that a later release has noted.
  const held = { ...marker(), "feature-level": { version: featureLevel + 1, release: "7.3.1" } };
  await world.disk.writeAtomically(formatMarkerFile, encodeFormatMarker(held, crc32c));
  await assert.rejects(claimFolder(world), (error) => error instanceof FailureError && /release 7\.3\.1 wrote it/.test(error.message));
});
