/** A master key that is replaced step by step under processes that look at its files at different moments, and after a loss of power. */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError } from "../process/config.ts";
import { type MasterKeyFiles, makeMasterKeyFile, masterKeyFilesBeside, masterKeyId, masterKeyIdFile, masterKeysOf } from "./master-key.ts";
import { addNextMasterKey, dropNextMasterKey, forgetPreviousMasterKey, masterKeyState, useNextMasterKey } from "./master-key-rotation.ts";
import { WatchedMasterKey } from "./watched-master-key.ts";

function filesFor(t: TestContext): MasterKeyFiles {
  const folder = mkdtempSync(join(tmpdir(), "stamp-master-keys-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const files = masterKeyFilesBeside(join(folder, "master-key"));
  makeMasterKeyFile(files.current);
  return files;
}

const idsOf = ({ keys }: Pick<WatchedMasterKey, "keys">): string[] => keys.map(masterKeyId);
const idsNoted = ({ current }: MasterKeyFiles): string[] => readFileSync(masterKeyIdFile(current), "utf8").trim().split("\n");

test("master key, rotation: at every step each process opens what every other one seals, whoever has looked and whoever has not", (t) => {
  const files = filesFor(t);
  const processes = [0, 1, 2].map(() => new WatchedMasterKey({ masterKeyFile: files.current }));
  const before = masterKeyState(files).current;
  /** All three look one after the other; before and after each, what one of them seals the others open. */
  const lookInTurn = (): void => {
    for (const each of [undefined, ...processes]) {
      each?.look();
      for (const sealing of processes)
        for (const opening of processes) assert.ok(idsOf(opening).includes(idsOf(sealing)[0] ?? ""), "one seals what another can't open");
    }
  };
  addNextMasterKey(files);
  lookInTurn();
  const next = masterKeyState(files).next ?? "";
  assert.deepEqual(
    processes.map(idsOf),
    [0, 1, 2].map(() => [before, next]),
  );
  addNextMasterKey(files);
  assert.equal(masterKeyState(files).next, next, "made once");
  useNextMasterKey(files);
  lookInTurn();
  assert.deepEqual(masterKeyState(files), { current: next, next: undefined, previous: before });
  assert.deepEqual(idsNoted(files), [next, before], "a copy of the folder says which keys it needs");
  for (const path of [files.current, files.previous]) assert.equal(statSync(path).mode & 0o777, 0o600, path);
  forgetPreviousMasterKey(files);
  lookInTurn();
  assert.deepEqual(
    processes.map(idsOf),
    [0, 1, 2].map(() => [next]),
  );
  assert.deepEqual([idsNoted(files), existsSync(files.previous)], [[next], false]);
});

test("master key, rotation: a loss of power between two files of a step loses no key, and the step is made again", (t) => {
  const files = filesFor(t);
  const before = masterKeyState(files).current;
  addNextMasterKey(files);
  const next = masterKeyState(files).next ?? "";
  // The first half of `use`: the key is at its place for the previous one, and the next one is not used yet.
  writeFileSync(files.previous, readFileSync(files.current), { mode: 0o600 });
  const opens = (): string[] => masterKeysOf({ masterKeyFile: files.current }).map(masterKeyId);
  assert.deepEqual(opens(), [before, next]);
  useNextMasterKey(files);
  assert.deepEqual(opens(), [next, before]);
  // A next key that was left behind when it was used.
  writeFileSync(files.next, readFileSync(files.current), { mode: 0o600 });
  assert.deepEqual(opens(), [next, before]);
  dropNextMasterKey(files);
  assert.deepEqual(masterKeyState(files), { current: next, next: undefined, previous: before });
});

test("master key: files that can't be used change nothing and are told; the ids of a process's own folder follow the files", (t) => {
  const files = filesFor(t);
  const idPath = `${files.current}.of-a-container`;
  const logged: string[] = [];
  const say = (message: string): void => void logged.push(message);
  const logger = { debug: say, info: say, warn: say, error: say } as never;
  const watched = new WatchedMasterKey({ masterKeyFile: files.current }, logger, idPath);
  const [before, text] = [idsOf(watched), readFileSync(files.current, "utf8")];
  const { keys } = watched;
  watched.look();
  assert.equal(watched.keys, keys, "the same list while nothing changes");
  assert.ok(Math.abs((watched.madeMs ?? 0) - Date.now()) < 60_000);
  for (const [what, spoil, words] of [
    ["gone", () => rmSync(files.current), /is gone \(id [0-9a-f]{16}\)/],
    ["cut", () => writeFileSync(files.current, text.slice(0, 20)), /32 random bytes in base64/],
    ["a next one that is none", () => writeFileSync(files.next, "short"), /master-key\.next: a master key is 32 random bytes/],
  ] as const) {
    spoil();
    watched.look();
    assert.match(watched.problem, words, what);
    assert.deepEqual(idsOf(watched), before, what);
    assert.ok(!logged.some((line) => line.includes(text.trim())), what);
    rmSync(files.next, { force: true });
    writeFileSync(files.current, text, { mode: 0o600 });
    watched.look();
    assert.deepEqual([watched.problem, idsOf(watched)], ["", before], what);
  }
  addNextMasterKey(files);
  useNextMasterKey(files);
  watched.look();
  assert.deepEqual(readFileSync(idPath, "utf8").trim().split("\n"), idsOf(watched));
  assert.equal(idsOf(watched).length, 2);
});

test("master key, rotation: a key that is kept elsewhere is mounted as a link: followed when it changes, and not replaced here", (t) => {
  const files = filesFor(t);
  const [first, second] = ["first", "second"].map((name) => `${files.current}-${name}`) as [string, string];
  renameSync(files.current, first);
  makeMasterKeyFile(second);
  symlinkSync(first, files.current);
  chmodSync(first, 0o400);
  const watched = new WatchedMasterKey({ masterKeyFile: files.current });
  assert.throws(
    () => masterKeyState(files),
    (error: unknown) => error instanceof ConfigError && /is a link to .*change the key where it is kept/.test(error.message),
  );
  const [before] = idsOf(watched);
  symlinkSync(second, `${files.current}.link`);
  renameSync(`${files.current}.link`, files.current);
  symlinkSync(first, files.previous);
  watched.look();
  assert.equal(idsOf(watched).length, 2);
  assert.equal(idsOf(watched)[1], before);
});
