/** Rows in memory for tests: runs steps one after another, as partition servers would, and knows at every moment what the tree shows. */

import { allRules, compareBytes, type Rules, toHex } from "@stamp/base";
import {
  type TreeAddress as Address,
  decodeTreeRow,
  type HeldEntry,
  type Plan,
  planOfStep,
  type ReadAnswer,
  type RowEntry,
  type Step,
  type StepAnswer,
  type StepDecision,
  type TreeName,
  type TreeRow,
  treeKey,
} from "@stamp/objects";
import type { Machine } from "../machine.ts";

export const testTree: TreeName = { account: "a", filesystem: "fs", incarnation: 7 };
export const rootId = "root";

/** An entry that can be reached: directory and name, as one text. */
export type Shown = ReadonlyMap<string, HeldEntry>;
export const slotOf = (directory: string, name: string): string => `${directory}/${name}`;

export class World {
  readonly rows: Map<string, RowEntry> = new Map();
  readonly rules: Rules;
  /** Rows of a page at most, as if the directory were split so often. */
  pageRowsMax = Number.POSITIVE_INFINITY;
  /** Writes that were committed. */
  commits = 0;
  /** ETags that nothing has. */
  failing: Set<string> = new Set();

  constructor(rules: Rules = allRules) {
    this.rules = rules;
  }

  step(step: Step): StepAnswer {
    const limited = step.kind === "page" ? { ...step, rowsMax: Math.min(step.rowsMax, this.pageRowsMax) } : step;
    const failing = this.failing;
    const { answer, writes } = this.#run(
      planOfStep(
        {
          tree: testTree,
          range: { low: new Uint8Array(0), high: new Uint8Array(0) },
          rules: this.rules,
          // biome-ignore lint/correctness/useYield: these conditions need no rows
          conditionsOf: function* (_at, conditions) {
            const { ifMatch = "" } = conditions;
            return failing.has(ifMatch) ? ifMatch : undefined;
          },
        },
        limited,
      ),
    );
    for (const write of writes) {
      if (write.kind === "delete") this.rows.delete(toHex(write.key));
      else this.rows.set(toHex(write.key), { key: write.key, value: write.value });
    }
    if (writes.length > 0) this.commits++;
    return answer;
  }

  #run(plan: Plan<StepDecision>): StepDecision {
    let turn = plan.next();
    while (!turn.done) {
      const read = turn.value;
      let answer: ReadAnswer = { kind: "pause" };
      if (read.kind === "get") answer = { kind: "get", value: this.rows.get(toHex(read.key))?.value };
      if (read.kind === "scan") {
        const inside = [...this.rows.values()]
          .filter(({ key }) => compareBytes(key, read.low) >= 0 && compareBytes(key, read.high) < 0)
          .sort((a, b) => compareBytes(a.key, b.key));
        answer = { kind: "scan", rows: inside.slice(0, read.rowsMax), more: inside.length > read.rowsMax, deleted: 0 };
      }
      turn = plan.next(answer);
    }
    return turn.value;
  }

  /** Runs the machine to its end, without anybody in between. */
  run<T>(machine: Machine<T>): T {
    let turn = machine.next();
    while (!turn.done) turn = machine.next(turn.value.map((step) => this.step(step)));
    return turn.value;
  }

  row(at: Address): TreeRow | undefined {
    const found = this.rows.get(toHex(treeKey(testTree, at)));
    return found && decodeTreeRow(found.value);
  }

  /** Returns what the entry shows now, by everything that is known. */
  shownAt(directory: string, name: string): HeldEntry | undefined {
    const row = this.row({ kind: "entry", directory, name });
    if (row?.decided) return row.decided.next;
    return row?.mark && this.row(row.mark.primary)?.decided?.id === row.mark.operation ? undefined : row?.held;
  }

  names(directory: string): string[] {
    return (this.step({ kind: "page", directory, after: "", rowsMax: 1_000 }).rows ?? []).map(({ name }) => name);
  }

  /** All that can be reached from the root. Throws for an id that is reached twice: two names, or a cycle. */
  shown(): Shown {
    const pages = this.pageRowsMax;
    this.pageRowsMax = Number.POSITIVE_INFINITY;
    const found = new Map<string, HeldEntry>();
    const ids = new Set<string>([rootId]);
    const open = [rootId];
    for (let directory = open.pop(); directory !== undefined; directory = open.pop()) {
      for (const name of this.names(directory)) {
        const held = this.shownAt(directory, name);
        if (!held) continue;
        if (ids.has(held.id)) throw new Error(`${held.id} has two names`);
        ids.add(held.id);
        found.set(slotOf(directory, name), held);
        const node = this.row({ kind: held.kind, id: held.id });
        if (!node || node.removed) throw new Error(`${held.id} has a name and is removed`);
        if (held.kind === "directory") open.push(held.id);
      }
    }
    this.pageRowsMax = pages;
    return found;
  }
}
