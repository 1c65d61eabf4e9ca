/** Each promise of docs/design/tree.md by its name. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeKey, type HeldKind } from "@stamp/objects";
import { create } from "./changes/create.ts";
import { remove } from "./changes/remove.ts";
import { rename } from "./changes/rename.ts";
import { collect, forget } from "./collect.ts";
import { list, listReadsMax } from "./list.ts";
import { ended, type Machine, type Result } from "./machine.ts";
import { filesNames, keyName } from "./names.ts";
import { resolve } from "./resolve.ts";
import { contextOf, path, Stopped } from "./testing/operations.ts";
import { rootId, World } from "./testing/world.ts";

const context = contextOf();
const replaces = { replaces: true };

const make = (world: World, text: string, kind: HeldKind = "directory") => world.run(create(context, path(text), kind)).id;
const refusalOf = (result: Result<unknown>): string => (result.ok ? "none" : result.refusal);
const found = (world: World, text: string): string | undefined => {
  const result = world.run(ended(resolve(context, path(text))));
  return result.ok ? result.value.at(-1)?.held.id : undefined;
};
const removal = (world: World, text: string, recursive: boolean) =>
  world.run(ended(remove(context, path(text), { kind: "either", recursive })));
const listed = (world: World, text = "") =>
  world.run(list(context, path(text), { recursive: true, entriesMax: 100 })).entries.map((entry) => entry.path.join("/"));

test("promise 1: a rename of a directory is atomic at each of its steps, and costs the same whatever is below", () => {
  const costs: number[] = [];
  for (const files of [0, 50]) {
    const world = new World();
    make(world, "a");
    make(world, "z");
    const inner = Array.from({ length: files }, (_, i) => make(world, `a/f${i}`, "file"));
    const id = found(world, "a");
    const before = world.commits;
    const running = new Stopped(world, rename(context, path("a"), path("z/b"), { replaces: false }));
    while (!running.isOver) {
      const places = [found(world, "a"), found(world, "z/b")].filter((each) => each !== undefined);
      assert.deepEqual(places, [id]);
      assert.equal(world.shown().size, files + 2);
      running.one();
    }
    assert.equal(running.end().ok, true);
    costs.push(world.commits - before);
    for (const [i, each] of inner.entries()) assert.equal(found(world, `z/b/f${i}`), each);
  }
  assert.deepEqual(costs, [7, 7]);
});

test("removed directories: whoever finishes a removal, or a rename onto an empty directory, tells of it", () => {
  const told: string[] = [];
  const telling = { ...context, removed: (directory: string) => told.push(directory) };
  for (const other of [false, true]) {
    for (const work of ["remove", "remove recursively", "rename"] as const) {
      const world = new World();
      make(world, "a");
      const gone = make(world, "b");
      const first = other ? context : telling;
      const machine: Machine<unknown> =
        work === "rename"
          ? rename(first, path("a"), path("b"), replaces)
          : remove(first, path("b"), { kind: "directory", recursive: work === "remove recursively" });
      if (other) {
        // Its coordinator dies with the operation decided, and somebody meets what it left.
        new Stopped(world, machine).before("end").lose();
        for (const text of ["a", "b"]) world.run(ended(create(telling, path(text), "directory")));
      } else assert.ok(world.run(ended(machine)).ok);
      assert.deepEqual([...new Set(told.splice(0))], [gone], `${work} by ${other ? "another" : "itself"}`);
    }
  }
});

test("promise 1: commits of a creation, a removal, and renames of a file and of a directory in its parent", () => {
  const world = new World();
  const costOf = (work: () => unknown): number => {
    const before = world.commits;
    work();
    return world.commits - before;
  };
  const costs = [
    costOf(() => make(world, "f", "file")),
    costOf(() => make(world, "d")),
    costOf(() => world.run(rename(context, ["f"], ["d", "g"], replaces))),
    costOf(() => world.run(rename(context, ["d"], ["e"], replaces))),
    costOf(() => removal(world, "e/g", false)),
  ];
  assert.deepEqual(costs, [3, 3, 5, 5, 5]);
});

test("promise 2: a creation that meets a removal under way is answered and found, or refused and not there", () => {
  for (let steps = 0; steps < 20; steps++) {
    const world = new World();
    make(world, "d");
    const removing = new Stopped(world, remove(context, ["d"], { kind: "directory", recursive: false }));
    for (let i = 0; i < steps; i++) removing.one();
    const created = world.run(ended(create(context, ["d", "f"], "file")));
    const removed = removing.end();
    assert.notEqual(created.ok, removed.ok, `${steps} steps`);
    assert.equal(found(world, "d/f") !== undefined, created.ok);
  }
});

test("promise 2: a creation that is asked for again under its id, after its beginning had no answer, gives a node that is there", () => {
  for (const kind of ["file", "directory"] as const) {
    for (const arrives of [true, false]) {
      const world = new World();
      const creating = new Stopped(world, create(context, ["f"], kind, { id: "mine" })).before("begin");
      const late = creating.lose();
      if (arrives) for (const step of late) world.step(step);
      assert.equal(refusalOf(creating.end()), "busy");
      assert.equal(world.run(create(context, ["f"], kind, { id: "mine" })).id, "mine");
      assert.equal(world.shown().size, 1, "shown() throws for a removed node with a name");
    }
  }
});

test("promise 2: a creation whose decision had no answer condemns nothing: others may have renamed what it made", () => {
  for (const id of [undefined, "mine"]) {
    const world = new World();
    const creating = new Stopped(world, create(context, ["f"], "file", { ...(id && { id }) })).before("decide");
    for (const step of creating.lose()) world.step(step);
    world.run(rename(context, ["f"], ["g"], { replaces: false }));
    assert.equal(refusalOf(creating.end()), "unknown");
    assert.equal(world.shown().size, 1);
  }
});

test("promise 3: a directory with content is removed only recursively, at once, and the collector takes what was below", () => {
  const world = new World();
  const ids = [make(world, "d"), make(world, "d/e"), make(world, "d/e/f", "file")];
  const kept = make(world, "k", "file");
  assert.equal(refusalOf(removal(world, "d", false)), "notEmpty");
  assert.equal(removal(world, "d", true).ok, true);
  assert.deepEqual(listed(world), ["k"]);
  const open = [ids[0] as string];
  const telling = { ...context, removed: (directory: string) => open.push(directory) };
  for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
    world.run(collect(telling, directory, 1));
    assert.equal(world.run(forget(context, directory)), true);
  }
  assert.equal(world.row({ kind: "file", id: ids[2] as string })?.removed, true);
  assert.equal(world.row({ kind: "file", id: kept })?.removed, undefined);
  assert.equal(world.row({ kind: "directory", id: ids[1] as string }), undefined);
});

test("promise 3: the collector comes to what is below a directory also if the answer to its removal was lost", () => {
  const world = new World();
  const [d, e] = [make(world, "d"), make(world, "d/e")];
  const file = make(world, "d/e/f", "file");
  assert.equal(removal(world, "d", true).ok, true);
  const open = [d];
  const lost = new Stopped(world, collect(context, d, 10)).before("decide");
  for (const step of lost.lose()) world.step(step);
  // Until its machine gives the answer up.
  while (!lost.isOver) lost.lose();
  const first = lost.end();
  assert.ok(first.ok && first.value.more);
  for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
    const taken = world.run(collect({ ...context, removed: (each) => open.push(each) }, directory, 10));
    if (!taken.more) world.run(forget(context, directory));
  }
  assert.equal(world.row({ kind: "file", id: file })?.removed, true);
  assert.equal(world.row({ kind: "directory", id: e }), undefined);
});

test("promise 4: no directory comes to lie below itself, a name that is taken is not given again", () => {
  const world = new World();
  make(world, "a");
  make(world, "a/b");
  assert.equal(refusalOf(world.run(ended(rename(context, ["a"], ["a", "b", "c"], replaces)))), "cycle");
  assert.equal(refusalOf(world.run(ended(create(context, ["a", "b"], "file")))), "exists");
  assert.equal(refusalOf(world.run(ended(rename(context, ["a", "b"], ["a"], { replaces: false })))), "exists");
  assert.equal(refusalOf(world.run(ended(rename(context, ["a", "b"], ["a"], replaces)))), "notEmpty");
  assert.equal(refusalOf(world.run(ended(remove(context, [], { kind: "either", recursive: true })))), "isRoot");
  make(world, "f", "file");
  assert.equal(refusalOf(world.run(ended(create(context, ["f", "g"], "file")))), "notDirectory");
  assert.equal(refusalOf(world.run(ended(rename(context, ["f"], ["a"], replaces)))), "isDirectory");
});

test("promise 5: a remembered chain is read anew, at once, and never believed", () => {
  const world = new World();
  make(world, "a");
  make(world, "a/b");
  make(world, "a/b/f", "file");
  const links = world.run(resolve(context, path("a/b/f")));
  const machine = resolve(context, path("a/b/f"), links);
  const first = machine.next();
  assert.equal(first.done ? 0 : first.value.length, 3);
  world.run(rename(context, path("a/b"), ["c"], replaces));
  const other = make(world, "a/b");
  const now = make(world, "a/b/f", "file");
  assert.deepEqual(
    world.run(resolve(context, path("a/b/f"), links)).map(({ held }) => held.id),
    [links[0]?.held.id, other, now],
  );
});

test("promise 6: a list of a directory that is split between any two names tells each entry once", () => {
  const world = new World();
  const names = ["a", "a/x", "a/y", "b", "c", "c/d", "c/d/e"];
  for (const name of names) make(world, name);
  world.pageRowsMax = 1;
  assert.deepEqual(listed(world), names);
  let page = world.run(list(context, [], { recursive: true, entriesMax: 2 }));
  const told = page.entries.map((entry) => entry.path.join("/"));
  world.run(rename(context, ["b"], ["0"], replaces));
  while (page.continuation) {
    page = world.run(list(context, [], { recursive: true, entriesMax: 1, continuation: page.continuation }));
    told.push(...page.entries.map((entry) => entry.path.join("/")));
  }
  assert.deepEqual(
    told,
    names.filter((name) => name !== "b"),
  );
});

test("promise 1: a list that runs beside a rename in its directory tells one name, wherever either of them stops", () => {
  for (const [from, to] of [
    ["f", "g"],
    ["g", "f"],
  ] as const) {
    for (const isReplaced of [false, true]) {
      for (let before = 0, isOver = false; !isOver; before++) {
        for (let read = 0; read < 8; read++) {
          const world = new World();
          const id = make(world, from, "file");
          if (isReplaced) make(world, to, "file");
          const renaming = new Stopped(world, rename(context, path(from), path(to), replaces));
          for (let step = 0; step < before; step++) renaming.one();
          isOver = renaming.isOver;
          const listing = new Stopped(world, list(context, [], { recursive: false, entriesMax: 10 }));
          for (let step = 0; step < read; step++) listing.one();
          renaming.end();
          const told = listing.end();
          const names = told.ok ? told.value.entries.filter(({ held }) => held.id === id) : [];
          assert.equal(names.length, 1, `${from} to ${to}, ${before} steps of the rename, ${read} of the list`);
        }
      }
    }
  }
});

test("promise 6: a recursive list reads each entry of a directory once, however many directories are among them", () => {
  const world = new World();
  make(world, "d");
  const paths = Array.from({ length: 300 }, (_, index) => [`d/${index}`, `d/${index}/f`] as const);
  for (const [directory, file] of paths) {
    make(world, directory);
    make(world, file, "file");
  }
  let read = 0;
  const machine = list(context, path("d"), { recursive: true, entriesMax: 5_000 });
  let turn = machine.next();
  while (!turn.done) {
    const answers = turn.value.map((step) => world.step(step));
    for (const { rows = [] } of answers) read += rows.length;
    turn = machine.next(answers);
  }
  assert.deepEqual([turn.value.entries.length, turn.value.continuation, read], [600, undefined, 600]);
});

test("promise 6: a continuation in the deepest path of wide characters is no longer than a query takes", () => {
  const world = new World();
  const names = Array.from({ length: 63 }, (_, index) => "\u540d".repeat(13) + String(index).padStart(2, "0"));
  for (let depth = 1; depth <= names.length; depth++) make(world, names.slice(0, depth).join("/"));
  make(world, [...names, "f"].join("/"), "file");
  const options = { recursive: true, entriesMax: names.length };
  const { continuation = new Uint8Array() } = world.run(list(context, [], options));
  // In hexadecimal digits, beside the rest of a request target of 16,384 characters.
  assert.ok(2 * continuation.length < 12_000, String(continuation.length));
  const rest = world.run(list(context, [], { ...options, continuation }));
  assert.deepEqual(
    rest.entries.map((entry) => entry.path),
    [[...names, "f"]],
  );
});

test("promise 6: a page of a recursive list ends after so many directories, and the next one goes on there", () => {
  const world = new World();
  const names = Array.from({ length: listReadsMax + 1 }, (_, index) => String(index)).toSorted();
  for (const name of names) make(world, name);
  const options = { recursive: true, entriesMax: 5_000 };
  const first = world.run(list(context, [], options));
  const second = world.run(list(context, [], { ...options, continuation: first.continuation }));
  assert.ok(first.continuation !== undefined && second.continuation === undefined && second.entries.length > 0);
  const told = [...first.entries, ...second.entries].map((entry) => entry.path.join("/"));
  assert.deepEqual(told, names);
});

test("tree: a rename that has found no directory at its target meets none, and leaves all as it was", () => {
  const world = new World();
  for (const name of ["a", "b"]) make(world, name);
  for (const name of ["f", "g"]) make(world, name, "file");
  const to = (from: string, target: string) =>
    refusalOf(world.run(ended(rename(context, [from], [target], { replaces: true, meetsDirectory: false }))));
  assert.equal(to("a", "b"), "changed");
  assert.equal(to("f", "b"), "changed");
  assert.deepEqual(listed(world), ["a", "b", "f", "g"]);
  assert.equal(to("f", "g"), "none");
  assert.equal(to("a", "c"), "none");
  assert.deepEqual(listed(world), ["b", "c", "g"]);
});

test("conditions of a client are checked at both sides of a rename, and a refusal leaves all as it was", () => {
  const world = new World();
  make(world, "f", "file");
  make(world, "g", "file");
  const before = world.shown();
  world.failing.add("etag");
  for (const options of [{ sourceConditions: { ifMatch: "etag" } }, { targetConditions: { ifMatch: "etag" } }]) {
    const result = world.run(ended(rename(context, ["f"], ["g"], { replaces: true, ...options })));
    assert.deepEqual(result, { ok: false, refusal: "conditionNotMet", condition: "etag" });
    assert.deepEqual(world.shown(), before);
  }
  world.failing.clear();
  const both = { replaces: true, sourceConditions: { ifMatch: "etag" }, targetConditions: { ifMatch: "etag" } };
  assert.equal(world.run(ended(rename(context, ["f"], ["g"], both))).ok, true);
  assert.equal(found(world, "g"), before.get("root/f")?.id);
});

test("names of Files differ by more than case, and are shown as they were written", () => {
  const world = new World();
  const files = contextOf(undefined, filesNames);
  world.run(create(files, ["Grün"], "directory"));
  assert.equal(refusalOf(world.run(ended(create(files, ["GRÜN"], "file")))), "exists");
  world.run(rename(files, ["grün"], ["GRün"], { replaces: false }));
  assert.deepEqual(listed(world), ["GRün"]);
  for (const name of ["gr", "GRÜ", "grün2", "gs", "a"]) world.run(create(files, [name], "file"));
  const begin = (prefix: string, entriesMax = 100, continuation?: Uint8Array) =>
    world.run(list(files, [], { recursive: false, entriesMax, prefix, continuation }));
  const namesOf = (prefix: string) => begin(prefix).entries.map(({ held }) => held.name);
  assert.deepEqual(namesOf("Grü"), ["GRÜ", "GRün", "grün2"]);
  assert.deepEqual([namesOf("g").length, namesOf("").length, namesOf("h")], [5, 6, []]);
  const page = begin("grü", 2);
  assert.deepEqual(
    begin("grü", 2, page.continuation).entries.map(({ held }) => held.name),
    ["grün2"],
  );
  assert.equal(refusalOf(world.run(ended(create(files, ["a:b"], "file")))), "badCharacter");
  for (const name of ["con", "LPT9", "Clock$"]) assert.equal(refusalOf(world.run(ended(create(files, [name], "file")))), "reserved");
  for (const name of ["con.txt", "LPT0", "CO"]) assert.equal(world.run(ended(create(files, [name], "file"))).ok, true, name);
  assert.equal(refusalOf(world.run(ended(create(context, ["a".repeat(256)], "file")))), "nameTooLong");
  assert.equal(refusalOf(world.run(ended(create(context, Array(65).fill("d"), "file")))), "tooDeep");
});

test("what the door has looked at: an operation that meets another file or directory by the path ends, and changes nothing", () => {
  const world = new World();
  const a = make(world, "a");
  const b = make(world, "a/b");
  const f = make(world, "a/b/f", "file");
  const before = world.commits;
  const refusalWith = (ids: readonly string[], work: (only: typeof context) => Parameters<typeof ended<unknown>>[0]): string =>
    refusalOf(world.run(ended(work({ ...context, admits: (id) => ids.includes(id) }))));
  const move = (only: typeof context) => rename(only, path("a/b/f"), path("a/g"), { replaces: true });
  const take = (only: typeof context) => remove(only, path("a/b/f"), { kind: "file", recursive: false });
  assert.equal(
    refusalWith([a, b], (only) => resolve(only, path("a/b/f"))),
    "changed",
  );
  assert.equal(refusalWith([a, b], take), "changed");
  assert.equal(refusalWith([a, f], take), "changed");
  assert.equal(refusalWith([b, f], move), "changed", "the directory of the target");
  assert.equal(
    refusalWith([a, f], (only) => create(only, path("a/b/new"), "file")),
    "changed",
  );
  assert.equal(
    refusalWith([f], (only) => list(only, path("a"), { recursive: false, entriesMax: 1 })),
    "changed",
  );
  assert.equal(world.commits, before);
  assert.equal(refusalWith([a, b, f], move), "none");
});

test("a list begins from a name, at any depth if it is recursive, whether the name is there or not", () => {
  const world = new World();
  for (const text of ["a", "a/b", "c", "c/d"]) make(world, text);
  for (const text of ["a/b/f", "a/g", "c/d/h", "z"]) make(world, text, "file");
  const from = (text: string, recursive = true, entriesMax = 100) =>
    world.run(list(context, [], { recursive, entriesMax, beginFrom: path(text) })).entries.map((entry) => entry.path.join("/"));
  assert.deepEqual(from("a/b/f"), ["a/b/f", "a/g", "c", "c/d", "c/d/h", "z"]);
  assert.deepEqual(from("a/b"), ["a/b", "a/b/f", "a/g", "c", "c/d", "c/d/h", "z"]);
  assert.deepEqual(from("a/c"), ["a/g", "c", "c/d", "c/d/h", "z"]);
  assert.deepEqual(from("b/c/d"), ["c", "c/d", "c/d/h", "z"]);
  assert.deepEqual(from("a/g/x"), ["c", "c/d", "c/d/h", "z"]);
  assert.deepEqual(from("c", false), ["c", "z"]);
  assert.deepEqual(from("zz"), []);
  const first = world.run(list(context, [], { recursive: true, entriesMax: 1, beginFrom: path("a/b/f") }));
  assert.deepEqual(
    first.entries.map((entry) => entry.path.join("/")),
    ["a/b/f"],
  );
  const rest = world.run(list(context, [], { recursive: true, entriesMax: 100, continuation: first.continuation }));
  assert.deepEqual(
    rest.entries.map((entry) => entry.path.join("/")),
    ["a/g", "c", "c/d", "c/d/h", "z"],
  );
});

test("names of files: letters that are no ASCII fold to none, so that no two names of different letters are one", () => {
  for (const [one, other] of [
    ["f\u0131le", "file"],
    ["\u017f", "s"],
    ["\u00df", "ss"],
  ] as const)
    assert.notEqual(keyName(filesNames, one), keyName(filesNames, other), one);
  assert.equal(keyName(filesNames, "ÄbC"), keyName(filesNames, "äBc"));
});

test("a continuation that somebody wrote goes on in the listed directory, and in what it leads to by names, and nowhere else", () => {
  const world = new World();
  const [open, closed] = [make(world, "open"), make(world, "closed")];
  const inner = make(world, "open/inner");
  for (const text of ["open/f", "open/inner/g", "closed/secret"]) make(world, text, "file");
  const after = (...frames: readonly (readonly [string, string, string])[]): string => {
    const options = { recursive: true, entriesMax: 100, continuation: encodeKey(frames) };
    const page = world.run(ended(list(context, ["open"], options)));
    return page.ok ? `${page.value.entries.map((entry) => entry.path.join("/"))} in ${page.value.opened.length}` : page.refusal;
  };
  for (const id of [closed, inner, rootId, "nobody"]) assert.equal(after([id, "", ""]), "badContinuation");
  assert.equal(after([open, "", "inner"], [inner, "inner", ""]), "inner/g in 2");
  for (const id of [closed, rootId, open, "nobody"]) assert.equal(after([open, "", "inner"], [id, "inner", ""]), " in 1");
  for (const name of ["", "f", "g"]) assert.match(after([open, "", name], [inner, "inner", ""]), / in 1$/, name);
  assert.equal(after([open, "", "inner"], [inner, "inner", "g"], [closed, "x", ""]), " in 2");
  const below = world.run(list(context, ["open"], { recursive: true, entriesMax: 100, beginFrom: ["inner", "g"] }));
  assert.deepEqual(below.opened, [open, inner]);
  assert.deepEqual(world.run(list(context, [], { recursive: false, entriesMax: 1 })).opened, [rootId]);
});
