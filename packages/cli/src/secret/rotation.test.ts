import assert from "node:assert/strict";
import { test } from "node:test";
import type { RotationState } from "@stamp/ports-node";
import { CommandError } from "../exit.ts";
import { type ProcessSecret, type RotationDoor, rotateSecret } from "./rotation.ts";

type Files = { current: string; next: string | undefined; previous: string | undefined };

/** Files, and processes of which each looks at them after so many questions. */
function model(files: Files, lagging: Readonly<Record<string, number>>) {
  const said: string[] = [];
  let made = 0;
  let nowMs = 0;
  const seen = new Map<string, { ids: string[]; left: number }>();
  const idsNow = (): string[] => [files.current, ...[files.next, files.previous].filter((id) => id !== undefined)];
  for (const name of Object.keys(lagging)) seen.set(name, { ids: idsNow(), left: 0 });
  const checkCommon = (): void => {
    const all = [...seen.values()].map(({ ids }) => new Set(ids));
    for (const one of all)
      for (const other of all)
        assert.ok(
          [...one].some((id) => other.has(id)),
          "two processes have no secret in common",
        );
  };
  const changed = (): void => {
    assert.ok(new Set(idsNow()).size <= 2, "more than two secrets");
    for (const [name, each] of seen) each.left = lagging[name] ?? 0;
  };
  const door: RotationDoor = {
    state: () => ({ ...files }) as RotationState,
    add: () => {
      files.next = `made-${++made}`;
      changed();
    },
    use: () => {
      files.previous = files.current;
      files.current = files.next as string;
      files.next = undefined;
      changed();
    },
    dropPrevious: () => {
      files.previous = undefined;
      changed();
    },
    dropNext: () => {
      files.next = undefined;
      changed();
    },
    processes: async () => {
      for (const each of seen.values()) {
        if (each.left-- <= 0) each.ids = idsNow();
        checkCommon();
      }
      return [...seen].map(([name, { ids }]): ProcessSecret => ({ name, state: "answers", ids, problem: "" }));
    },
    pause: async () => {
      nowMs += 100;
    },
    nowMs: () => nowMs,
    tell: (how) => said.push(how),
  };
  return { door, said, files };
}

test("rotation: each step waits for the slowest process, and no two are ever without a common secret", async () => {
  const { door, files, said } = model({ current: "old", next: undefined, previous: undefined }, { quick: 0, slow: 7 });
  assert.deepEqual(await rotateSecret(door, 10_000), { id: "made-1", steps: ["add", "use", "drop"] });
  assert.deepEqual(files, { current: "made-1", next: undefined, previous: undefined });
  assert.ok(said.some((line) => /waiting for 1 of 2 processes to accept the next secret, first slow/.test(line)));
});

test("rotation: goes on from every place where it can have been left, and makes no second secret", async () => {
  const left: Readonly<Record<string, [Files, readonly string[], string]>> = {
    added: [{ current: "old", next: "new", previous: undefined }, ["use", "drop"], "new"],
    "half of use": [{ current: "old", next: "new", previous: "old" }, ["use", "drop"], "new"],
    used: [{ current: "new", next: undefined, previous: "old" }, ["drop"], "new"],
    "used, the name is still there": [{ current: "new", next: "new", previous: "old" }, ["drop"], "new"],
    "copied and not used": [{ current: "old", next: undefined, previous: "old" }, ["add", "use", "drop"], "made-1"],
  };
  for (const [what, [at, steps, id]] of Object.entries(left)) {
    const { door, files } = model({ ...at }, { one: 2, two: 0 });
    assert.deepEqual(await rotateSecret(door, 10_000), { id, steps }, what);
    assert.deepEqual(files, { current: id, next: undefined, previous: undefined }, what);
  }
});

test("rotation: a process that is silent, can't read its files or tells no secrets holds the step up, and is named", async () => {
  for (const [process, words] of [
    [{ name: "x", state: "silent", ids: [], problem: "timeout" }, /x: timeout/],
    [{ name: "x", state: "answers", ids: ["old"], problem: "no permission" }, /x: no permission/],
    [{ name: "x", state: "answers", ids: ["old"], problem: "" }, /x: it has old/],
    [{ name: "x", state: "answers", ids: [], problem: "" }, /x: it tells no secrets/],
  ] as const) {
    const { door, files } = model({ current: "old", next: undefined, previous: undefined }, { one: 0 });
    const held = { ...door, processes: async () => [...(await door.processes()), process] };
    await assert.rejects(
      rotateSecret(held, 1_000),
      (error) => error instanceof CommandError && words.test(error.message) && /again/.test(error.message),
    );
    assert.deepEqual(files, { current: "old", next: "made-1", previous: undefined }, "nothing was taken from anybody");
  }
  const { door } = model({ current: "old", next: undefined, previous: undefined }, { one: 0 });
  const down = { name: "x", state: "down", ids: [], problem: "" } as const;
  const rotated = await rotateSecret({ ...door, processes: async () => [...(await door.processes()), down] }, 1_000);
  assert.equal(rotated.id, "made-1", "one that does not run reads the files when it starts");
});
