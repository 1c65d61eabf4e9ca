/**
 * Many operations at once, a step at a time, on a tree that is judged against a reference after every step: what is seen changes only as
 * one creation, one removal or one rename would change it, when that operation is under way, and as its answer says.
 */

import assert from "node:assert/strict";
import { Prng, type Rules } from "@stamp/base";
import { decodeTreeRow, type HeldEntry, type Step } from "@stamp/objects";
import { create } from "../changes/create.ts";
import { remove } from "../changes/remove.ts";
import { rename } from "../changes/rename.ts";
import { collect, forget } from "../collect.ts";
import { type ListPage, list } from "../list.ts";
import { ended, type Machine, type MachineContext, type Result } from "../machine.ts";
import { dataLakeNames } from "../names.ts";
import { freed, shown } from "../settle.ts";
import { rootId, type Shown, slotOf, World } from "./world.ts";

interface Actor {
  readonly what: string;
  readonly machine: Machine<Result<unknown>>;
  /** Steps whose answers the machine waits for. */
  steps: readonly Step[];
  /** Changes of the tree that its steps have made. */
  changes: number;
  /** True if a directory was removed with what was in it meanwhile. */
  removals: boolean;
  /** Answers that a read may give: everything that its slot has shown since it began. */
  readonly slot?: string;
  readonly seen: Set<string>;
  /** Entries that a list must tell of, for nothing has changed on the way to them since it began. */
  stayed: Map<string, HeldEntry>;
}

const names = ["a", "b"];

export class Actors {
  readonly world: World;
  readonly #rng: Prng;
  readonly #rules: Rules;
  #actors: Actor[] = [];
  #late: { step: Step; actor: Actor }[] = [];
  #shown: Shown = new Map();
  #ids = 0;

  constructor(seed: number, rules: Rules) {
    this.#rng = new Prng(seed);
    this.#rules = rules;
    this.world = new World(rules);
  }

  context(impatient = false): MachineContext {
    return {
      rules: this.#rules,
      names: dataLakeNames,
      root: rootId,
      newId: () => `i${++this.#ids}`,
      nowMs: 1_000,
      mayGiveUp: () => impatient || this.#rng.chance(0.5),
    };
  }

  run(steps: number): void {
    for (let i = 0; i < steps; i++) {
      this.world.pageRowsMax = 1 + this.#rng.below(3);
      if (this.#actors.length < 5 && this.#rng.chance(0.4)) this.#begin();
      if (this.#late.length > 0 && this.#rng.chance(0.15)) this.#deliverLate();
      const actor = this.#actors[this.#rng.below(Math.max(1, this.#actors.length))];
      if (actor) this.#advance(actor);
    }
    this.#quiesce();
  }

  #path(): string[] {
    return Array.from({ length: 1 + this.#rng.below(3) }, () => names[this.#rng.below(names.length)] as string);
  }

  #begin(): void {
    const context = this.context();
    const kind = this.#rng.below(16);
    const path = this.#path();
    if (kind < 4) this.#add(`create ${path}`, create(context, path, this.#rng.chance(0.7) ? "directory" : "file"));
    else if (kind < 9) {
      const to = this.#path();
      this.#add(`rename ${path} ${to}`, rename(context, path, to, { replaces: this.#rng.chance(0.7) }));
    } else if (kind < 12) {
      this.#add(`remove ${path}`, remove(context, path, { kind: "either", recursive: this.#rng.chance(0.3) }));
    } else if (kind < 13) this.#add("list", this.#listAll(context));
    else if (kind < 14) {
      // Anyone asks the collector for any directory: it takes only what is removed.
      const id = `i${1 + this.#rng.below(Math.max(1, this.#ids))}`;
      this.#add(`collect ${id}`, collect(context, id, 2));
    } else {
      const directories = [rootId, ...[...this.#shown.values()].filter((held) => held.kind === "directory").map(({ id }) => id)];
      const directory = directories[this.#rng.below(directories.length)] as string;
      const name = names[this.#rng.below(names.length)] as string;
      this.#add(`read ${directory}/${name}`, shown(context, { kind: "entry", directory, name }), slotOf(directory, name));
    }
  }

  *#listAll(context: MachineContext): Machine<unknown> {
    const entries: HeldEntry[] = [];
    let page: ListPage = yield* list(context, [], { recursive: true, entriesMax: 1 });
    for (let pages = 0; ; pages++) {
      entries.push(...page.entries.map(({ held }) => held));
      if (!page.continuation || pages > 200) return entries;
      page = yield* list(context, [], { recursive: true, entriesMax: 1 + (pages % 2), continuation: page.continuation });
    }
  }

  #add(what: string, machine: Machine<unknown>, slot?: string): void {
    const run = ended(machine);
    const turn = run.next();
    if (turn.done) return;
    const seen = new Set(slot === undefined ? [] : [this.#idAt(slot)]);
    const stayed = new Map(this.#shown);
    this.#actors.push({
      what,
      machine: run,
      steps: turn.value,
      changes: 0,
      removals: false,
      ...(slot !== undefined && { slot }),
      seen,
      stayed,
    });
  }

  #idAt(slot: string): string {
    const cut = slot.lastIndexOf("/");
    return this.world.shownAt(slot.slice(0, cut), slot.slice(cut + 1))?.id ?? "";
  }

  #advance(actor: Actor): void {
    const fate = this.#rng.below(40);
    if (fate === 0) {
      // The coordinator dies here.
      this.#leave(actor);
      return;
    }
    const answers = actor.steps.map((step) => {
      if (fate === 1) return this.#later(step, actor);
      const answer = this.#do(step, actor);
      return fate === 2 ? undefined : answer; // The answer is lost.
    });
    const turn = actor.machine.next(answers);
    if (!turn.done) {
      actor.steps = turn.value;
      return;
    }
    this.#leave(actor);
    this.#judge(actor, turn.value);
  }

  #later(step: Step, actor: Actor): undefined {
    if (step.kind !== "look" && step.kind !== "page") this.#late.push({ step, actor });
    return undefined;
  }

  #deliverLate(): void {
    const [late] = this.#late.splice(this.#rng.below(this.#late.length), 1);
    if (late) this.#do(late.step, late.actor);
  }

  #leave(actor: Actor): void {
    this.#actors = this.#actors.filter((each) => each !== actor);
  }

  #do(step: Step, actor: Actor) {
    const answer = this.world.step(step);
    this.#compare(actor, step);
    for (const reader of this.#actors) if (reader.slot !== undefined) reader.seen.add(this.#idAt(reader.slot));
    return answer;
  }

  /** The reference: what one step may change of what is seen. */
  #compare(actor: Actor, step: Step): void {
    const before = this.#shown;
    const after = this.world.shown();
    this.#shown = after;
    const came = [...after].filter(([slot, { id }]) => before.get(slot)?.id !== id);
    const went = [...before].filter(([slot, { id }]) => after.get(slot)?.id !== id);
    if (came.length + went.length === 0) return;
    actor.changes++;
    for (const each of this.#actors) for (const [slot] of [...went, ...came]) each.stayed.delete(slot);
    const tell = `${actor.what}: ${step.kind} changed ${JSON.stringify({ came, went })}`;
    assert.equal(step.kind, "decide", tell);
    if (actor.what.startsWith("create")) {
      assert.deepEqual([came.length, went.length], [1, 0], tell);
      return;
    }
    if (actor.what.startsWith("remove")) {
      assert.equal(came.length, 0, tell);
      const isRecursive = step.kind === "decide" && step.operation.participants[0]?.fate === "condemn";
      if (isRecursive) for (const each of this.#actors) each.removals = true;
      else assert.equal(went.length, 1, `${tell}: it was not empty`);
      return;
    }
    assert.ok(actor.what.startsWith("rename"), tell);
    // Limits of what is promised (docs/design/tree.md): a removal of a directory above was under way too. What is moved came into that
    // directory, and went with it, or comes out of it.
    if (actor.removals && came.length === 0) {
      for (const each of this.#actors) each.removals = true;
      return;
    }
    if (actor.removals && !went.some(([, { id }]) => came.some(([, held]) => held.id === id))) return;
    assert.equal(came.length, 1, tell);
    const moved = came[0]?.[1].id;
    assert.ok(
      went.some(([, { id }]) => id === moved),
      `${tell}: from nowhere`,
    );
    assert.ok(went.length <= 2, `${tell}: more than it replaces went`);
  }

  #judge(actor: Actor, result: Result<unknown>): void {
    const tell = `${actor.what} answers ${JSON.stringify(result)}`;
    if (actor.slot !== undefined) {
      if (result.ok) assert.ok(actor.seen.has((result.value as HeldEntry | undefined)?.id ?? ""), `${tell}, of ${[...actor.seen]}`);
      return;
    }
    if (actor.what === "list" && result.ok) this.#judgeList(tell, actor, result.value as HeldEntry[]);
    if (!/^(create|rename|remove)/.test(actor.what)) return;
    const [, from, to] = actor.what.split(" ");
    if (result.ok && actor.what.startsWith("rename") && from === to) return;
    if (result.ok) assert.ok(actor.changes === 1 || actor.removals, `${tell} and changed ${actor.changes}`);
    else if (result.refusal !== "unknown") assert.equal(actor.changes, 0, tell);
  }

  #judgeList(tell: string, actor: Actor, entries: readonly HeldEntry[]): void {
    const told = entries.map(({ id }) => id);
    // Walks along entries that all stayed since the list began.
    const open = [rootId];
    for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
      for (const name of names) {
        const held = actor.stayed.get(slotOf(directory, name));
        if (!held) continue;
        assert.equal(told.filter((id) => id === held.id).length, 1, `${tell} and not ${held.id} once`);
        if (held.kind === "directory") open.push(held.id);
      }
    }
  }

  /** Everybody dies, what is late arrives, the rest is settled and collected: then only what is seen is there. */
  #quiesce(): void {
    while (this.#late.length > 0) this.#deliverLate();
    this.#actors = [];
    this.world.pageRowsMax = 3;
    const context = this.context(true);
    const before = JSON.stringify([...this.world.shown()].sort());
    for (let pass = 0; pass < 8; pass++) {
      for (let i = 0; i <= this.#ids; i++) {
        const directory = i === 0 ? rootId : `i${i}`;
        for (const name of names) this.world.run(freed(context, { kind: "entry", directory, name }));
        for (const kind of ["directory", "file"] as const) this.world.run(freed(context, { kind, id: directory }));
        this.world.run(freed(context, { kind: "lock" }));
        this.world.run(ended(collect(context, directory, 2)));
      }
    }
    assert.equal(JSON.stringify([...this.world.shown()].sort()), before, "settling and collecting change nothing that is seen");
    const reached = new Set([rootId, ...[...this.world.shown().values()].map(({ id }) => id)]);
    for (const { value } of this.world.rows.values()) {
      const { held, mark, begun, decided } = decodeTreeRow(value);
      if (held) assert.ok(reached.has(held.id), `${held.id} is orphaned`);
      assert.ok(!begun && !decided && !mark, "an operation is left");
    }
    for (let i = 1; i <= this.#ids; i++)
      if (this.world.row({ kind: "directory", id: `i${i}` })?.removed) assert.ok(this.world.run(forget(context, `i${i}`)));
  }
}
