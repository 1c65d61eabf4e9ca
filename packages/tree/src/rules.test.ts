/** Each rule of docs/design/tree.md: the interleaving that breaks a promise without it, and does not with it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type RuleName, type Rules, rulesWithout } from "@stamp/base";
import type { EntryAddress, HeldKind } from "@stamp/objects";
import { create } from "./changes/create.ts";
import { remove } from "./changes/remove.ts";
import { rename } from "./changes/rename.ts";
import { collect } from "./collect.ts";
import { ended } from "./machine.ts";
import { resolve } from "./resolve.ts";
import { freed, shown } from "./settle.ts";
import { contextOf, path, Stopped } from "./testing/operations.ts";
import { rootId, World } from "./testing/world.ts";

const entry = (name: string): EntryAddress => ({ kind: "entry", directory: rootId, name });

/** A world with some operations; their rules are those of the case. */
class Case {
  readonly world: World;
  readonly context: ReturnType<typeof contextOf>;

  constructor(rules: Rules) {
    this.world = new World(rules);
    this.context = contextOf(rules);
  }

  make(text: string, kind: HeldKind): string {
    return this.world.run(create(this.context, path(text), kind)).id;
  }

  renaming(from: string, to: string) {
    return new Stopped(this.world, rename(this.context, path(from), path(to), { replaces: false }));
  }

  removing(text: string, recursive = false) {
    return new Stopped(this.world, remove(this.context, path(text), { kind: "either", recursive }));
  }

  creating(text: string) {
    return new Stopped(this.world, create(this.context, path(text), "file"));
  }

  free(...names: readonly string[]): void {
    for (const name of names) this.world.run(freed(this.context, entry(name)));
  }

  finds(text: string): boolean {
    return this.world.run(ended(resolve(this.context, path(text)))).ok;
  }
}

/** Renames f to g until it would be decided; others free both entries then, and it goes on. True if both names are there. */
function sleeps(rules: Rules, before: "begin" | "decide", frees: readonly string[]): boolean {
  const now = new Case(rules);
  now.make("f", "file");
  const renaming = now.renaming("f", "g").before(before);
  now.free(...frees);
  renaming.end();
  return now.finds("f") && now.finds("g");
}

/** Each returns true if a promise is broken. */
const cases: readonly (readonly [RuleName, (rules: Rules) => boolean])[] = [
  ["treeBegunBeforeMarks", (rules) => sleeps(rules, "begin", ["f"])],
  ["treeDecidedWhereBegun", (rules) => sleeps(rules, "decide", ["g", "f"])],
  ["treeMarksOutliveClocks", (rules) => sleeps(rules, "decide", ["f"])],
  ["treePrimaryFinished", (rules) => sleeps(rules, "decide", [])],
  [
    "treeAttemptsFresh",
    (rules) => {
      const now = new Case(rules);
      now.make("f", "file");
      const renaming = now.renaming("f", "g").before("begin");
      const late = renaming.lose();
      renaming.before("decide");
      now.free("g", "f");
      for (const step of late) now.world.step(step);
      renaming.end();
      return now.finds("f") && now.finds("g");
    },
  ],
  [
    "treeMarksAskPrimary",
    (rules) => {
      const now = new Case(rules);
      now.make("f", "file");
      now.renaming("f", "g").before("take");
      return now.finds("f") && now.finds("g");
    },
  ],
  [
    "treeMarksReadAgain",
    (rules) => {
      const now = new Case(rules);
      now.make("f", "file");
      const renaming = now.renaming("f", "g").before("take");
      const reading = new Stopped(now.world, shown(now.context, entry("f"))).one();
      renaming.end();
      const read = reading.end();
      return read.ok && read.value !== undefined;
    },
  ],
  [
    "treeWriteBeforeLook",
    (rules) => {
      const now = new Case(rules);
      now.make("d", "directory");
      const creating = now.creating("d/f").before("begin");
      const removed = now.removing("d").end();
      return removed.ok && creating.end().ok;
    },
  ],
  [
    "treeMarkBeforeLook",
    (rules) => {
      const now = new Case(rules);
      now.make("d", "directory");
      const removing = now.removing("d").before("mark");
      const created = now.creating("d/f").end();
      return created.ok && removing.end().ok;
    },
  ],
  [
    "treeBegunIsEntry",
    (rules) => {
      const now = new Case(rules);
      now.make("d", "directory");
      const creating = now.creating("d/f").before("decide");
      const removed = now.removing("d").end();
      return creating.end().ok && removed.ok;
    },
  ],
  [
    "treeCollectsRemoved",
    (rules) => {
      const now = new Case(rules);
      const id = now.make("d", "directory");
      now.make("d/f", "file");
      now.world.run(ended(collect(now.context, id, 10)));
      return !now.finds("d/f");
    },
  ],
  [
    "treeMoveLock",
    (rules) => {
      const now = new Case(rules);
      now.make("a", "directory");
      now.make("b", "directory");
      const one = now.renaming("a", "b/a").before("decide");
      const other = now.renaming("b", "a/b").end();
      return one.end().ok && other.ok;
    },
  ],
  [
    "treeWalkUnderLock",
    (rules) => {
      const now = new Case(rules);
      now.make("a", "directory");
      now.make("b", "directory");
      const one = now.renaming("a", "b/a").before("mark");
      const other = now.renaming("b", "a/b").end();
      return one.end().ok && other.ok;
    },
  ],
];

for (const [rule, breaks] of cases) {
  test(`tree: ${rule} is needed, and enough`, () => {
    assert.equal(breaks(allRules), false, "with every rule");
    assert.equal(breaks(rulesWithout(rule)), true, "without it");
  });
}

test("tree: a removal and a rename that met somebody's leavings finish them", () => {
  const now = new Case(allRules);
  const file = now.make("f", "file");
  now.renaming("f", "g").before("take");
  assert.equal(now.removing("f").end().ok, false);
  assert.equal(now.renaming("g", "h").end().ok, true);
  assert.deepEqual(
    [...now.world.shown().values()].map(({ id }) => id),
    [file],
  );
  assert.equal(now.world.row(entry("f")), undefined);
});

test("tree: a removal that slept takes no mark of a later removal of the same directory for dead", () => {
  const now = new Case(allRules);
  now.make("d", "directory");
  const slept = now.removing("d").before("mark");
  now.free("d");
  const later = now.removing("d").before("decide");
  slept.end();
  const created = now.creating("d/f").end();
  assert.equal(created.ok && later.end().ok, false);
});
