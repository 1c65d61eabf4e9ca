import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandError } from "../exit.ts";
import { forgetPreviousKey, type KeyDoor, type KeyHolder, rotateMasterKey } from "./key-rotation.ts";

type Files = { current: string; next: string | undefined; previous: string | undefined };

/** A stamp of files, rows and partition servers. Each server reads the files again after some questions, and writes a row now and then. */
function model(files: Files, lagging: Readonly<Record<string, number>>, rows: string[] = ["old", "old", ""]) {
  const said: string[] = [];
  let made = 0;
  let nowMs = 0;
  let recordBy: string | undefined = "old";
  const seen = new Map<string, { ids: string[]; left: number }>();
  const idsNow = (): string[] => [...new Set([files.current, files.next, files.previous].filter((id) => id !== undefined))];
  for (const name of Object.keys(lagging)) seen.set(name, { ids: idsNow(), left: 0 });
  const changed = (): void => {
    for (const [name, each] of seen) each.left = lagging[name] ?? 0;
    check();
  };
  /** Every row, and whatever a server seals now, opens at every server. */
  const check = (): void => {
    for (const { ids } of seen.values())
      for (const by of [...rows.filter((row) => row !== ""), ...[...seen.values()].map((each) => each.ids[0] ?? "")])
        assert.ok(ids.includes(by), `what ${by} seals does not open with ${ids}`);
  };
  const door: KeyDoor = {
    state: () => ({ ...files }),
    add: () => {
      files.next ??= `made-${++made}`;
      changed();
    },
    use: () => {
      files.previous = files.current;
      files.current = files.next as string;
      files.next = undefined;
      changed();
    },
    dropNext: () => {
      files.next = undefined;
      changed();
    },
    forget: () => {
      files.previous = undefined;
      changed();
    },
    holders: async () => {
      for (const each of seen.values()) {
        if (each.left-- <= 0) each.ids = idsNow();
        // A client changes an account: the server seals it with the key that it has.
        rows[0] = each.ids[0] ?? "";
        check();
      }
      return [...seen].map(([name, { ids }]): KeyHolder => ({ name, state: "answers", ids, problem: "" }));
    },
    reseal: async (keyId) => {
      const resealed = rows.filter((row) => row !== keyId).length;
      for (const { ids } of seen.values()) assert.equal(ids[0], keyId, "sealed anew by a server that has another key");
      rows.fill(keyId);
      check();
      return { rows: { [keyId]: rows.length }, resealed };
    },
    recordSealedBy: () => recordBy,
    pause: async () => {
      nowMs += 100;
    },
    nowMs: () => nowMs,
    tell: (how) => {
      said.push(how);
      if (how.includes("cluster.json")) recordBy = files.current;
    },
  };
  return { door, said, files, rows };
}

test("key rotation: each step waits for the slowest server, and what one seals every other one opens; the key before is kept", async () => {
  const { door, files, said } = model({ current: "old", next: undefined, previous: undefined }, { quick: 0, slow: 7 });
  const rotated = await rotateMasterKey(door, 10_000);
  assert.deepEqual(
    [rotated.id, rotated.previous, rotated.steps, rotated.rows],
    ["made-1", "old", ["add", "use", "reseal"], { "made-1": 3 }],
  );
  assert.deepEqual(files, { current: "made-1", next: undefined, previous: "old" });
  assert.ok(said.some((line) => /waiting for 1 of 2 partition servers to know the next master key made-1, first slow/.test(line)));
  assert.ok(said.some((line) => /supervisor to write cluster\.json/.test(line)));
  const again = await rotateMasterKey(door, 10_000);
  assert.deepEqual(
    [again.id, again.previous, again.steps],
    ["made-1", "old", []],
    "no second rotation begins while the key before is kept",
  );
  const forgotten = await forgetPreviousKey(door, 10_000);
  assert.deepEqual([forgotten.steps, forgotten.previous, files.previous], [["forget"], undefined, undefined]);
  await assert.rejects(forgetPreviousKey(door, 1_000), /no master key before made-1 is kept here/);
});

test("key rotation: goes on from every place where it can have been left, and makes no second key", async () => {
  const left: Readonly<Record<string, [Files, string[], readonly string[], string]>> = {
    added: [{ current: "old", next: "new", previous: undefined }, ["old", "old"], ["use", "reseal"], "new"],
    "half of use": [{ current: "old", next: "new", previous: "old" }, ["old", "old"], ["use", "reseal"], "new"],
    used: [{ current: "new", next: undefined, previous: "old" }, ["new", "old"], ["reseal"], "new"],
    "used, the name is still there": [{ current: "new", next: "new", previous: "old" }, ["old", "old"], ["reseal"], "new"],
    "all rows but one": [{ current: "new", next: undefined, previous: "old" }, ["new", "new", "old"], ["reseal"], "new"],
    "copied and not used": [{ current: "old", next: undefined, previous: "old" }, ["old", ""], ["add", "use", "reseal"], "made-1"],
  };
  for (const [what, [at, rows, steps, id]] of Object.entries(left)) {
    const { door, files } = model({ ...at }, { one: 2, two: 0 }, [...rows]);
    const rotated = await rotateMasterKey(door, 10_000);
    assert.deepEqual([rotated.id, rotated.steps, rotated.rows], [id, steps, { [id]: rows.length }], what);
    assert.deepEqual(files, { current: id, next: undefined, previous: "old" }, what);
  }
});

test("key rotation: a server that is silent, can't read its files, is older or lacks the key holds the step up, and is named", async () => {
  for (const [holder, words] of [
    [{ name: "x", state: "silent", ids: undefined, problem: "timeout" }, /x: timeout/],
    [{ name: "x", state: "answers", ids: ["old"], problem: "no permission" }, /x: no permission/],
    [{ name: "x", state: "answers", ids: ["old"], problem: "" }, /x: it has old/],
    [{ name: "x", state: "answers", ids: [], problem: "" }, /x: it has no master key/],
    [{ name: "x", state: "answers", ids: undefined, problem: "" }, /x: it is of an older release/],
  ] as const) {
    const { door, files, rows } = model({ current: "old", next: undefined, previous: undefined }, { one: 0 });
    const held = { ...door, holders: async () => [...(await door.holders()), holder] };
    await assert.rejects(
      rotateMasterKey(held, 1_000),
      (error) => error instanceof CommandError && words.test(error.message) && /again/.test(error.message),
    );
    assert.deepEqual(files, { current: "old", next: "made-1", previous: undefined }, "nothing was taken from anybody");
    assert.ok(!rows.includes("made-1"));
    Object.assign(files, { current: "made-1", next: undefined, previous: "old" });
    await assert.rejects(forgetPreviousKey(held, 1_000), words);
    assert.equal(files.previous, "old");
  }
  const { door } = model({ current: "old", next: undefined, previous: undefined }, { one: 0 });
  const down = { name: "x", state: "down", ids: undefined, problem: "" } as const;
  const rotated = await rotateMasterKey({ ...door, holders: async () => [...(await door.holders()), down] }, 1_000);
  assert.equal(rotated.id, "made-1", "one that does not run reads the files when it starts");
  await assert.rejects(rotateMasterKey({ ...door, holders: async () => [down] }, 1_000), /no partition server runs/);
});

test("key rotation: on a second host no other next key is made, and a third key is refused", async () => {
  const { door, files } = model({ current: "old", next: undefined, previous: undefined }, { one: 0 });
  const elsewhere = { name: "far", state: "answers", ids: ["old", "theirs"], problem: "" } as const;
  await assert.rejects(
    rotateMasterKey({ ...door, holders: async () => [...(await door.holders()), elsewhere] }, 1_000),
    /far has master key theirs besides, or instead of old: a rotation was begun on another host.*Copy master-key\.next/s,
  );
  assert.equal(files.next, undefined);
  const three = model({ current: "b", next: "c", previous: "a" }, { one: 0 });
  await assert.rejects(rotateMasterKey(three.door, 1_000), /three master keys are here: b, the next one c and the one before a/);
  const open = model({ current: "b", next: "c", previous: undefined }, { one: 0 });
  await assert.rejects(forgetPreviousKey(open.door, 1_000), /a rotation to master key c is under way/);
});

test("key rotation: rows that another key still seals keep the key before", async () => {
  const { door, files } = model({ current: "new", next: undefined, previous: "old" }, { one: 0 }, ["new"]);
  await assert.rejects(
    forgetPreviousKey({ ...door, reseal: async () => ({ rows: { new: 4, old: 1 }, resealed: 0 }) }, 1_000),
    /rows are still sealed by master key old/,
  );
  assert.equal(files.previous, "old");
});
