/** Trees over a router whose answers are lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, fromHex, type Outcome, ok, toHex, unknownOutcome } from "@stamp/base";
import {
  addressOfPlace,
  decodeTreeRow,
  encodeTreeRow,
  type HeldEntry,
  planOfStep,
  type Read,
  type ReadAnswer,
  type Step,
  type StepAnswer,
  type TreeName,
  type TreeRow,
} from "@stamp/objects";
import { silentLogger, type World } from "@stamp/ports";
import { NodeClock, NodeRandom } from "@stamp/ports-node";
import { create, remove, rename } from "@stamp/tree";
import type { OperationKind, RoutedAnswer, Router } from "../routing/router.ts";
import { Trees } from "./trees.ts";

const tree: TreeName = { account: "acct", filesystem: "fs", incarnation: 7 };

type Asked = Extract<OperationKind, { case: "tree" }>["value"] & { readonly row?: Uint8Array };

/** Steps of a creation, from the wire. */
function stepOf({ action, at: place, row, expectedId, operationId = "" }: Asked): Step {
  const at = addressOfPlace(place as Parameters<typeof addressOfPlace>[0]);
  const operation = row && decodeTreeRow(row).begun;
  const expected = expectedId === "" ? undefined : expectedId;
  return { kind: action, at, operation: operation ?? operationId, expectedId: expected } as Step;
}

/** Rows behind a router that does not hear the first answer to a step of one kind, and asks again where it may. */
class Rows {
  readonly rows: Map<string, Uint8Array> = new Map();
  readonly sent: string[] = [];
  #lost: string | undefined;
  readonly #meanwhile: () => void;

  constructor(lost: string, meanwhile: () => void) {
    this.#lost = lost;
    this.#meanwhile = meanwhile;
  }

  step(step: Step): StepAnswer {
    const range = { low: new Uint8Array(0), high: new Uint8Array(0) };
    const conditionsOf = () => {
      throw new Error("there are no conditions");
    };
    const plan = planOfStep({ tree, rules: allRules, range, conditionsOf }, step);
    let turn = plan.next();
    while (!turn.done) turn = plan.next(this.#answer(turn.value));
    for (const write of turn.value.writes) {
      if (write.kind === "delete") this.rows.delete(toHex(write.key));
      else this.rows.set(toHex(write.key), write.value);
    }
    return turn.value.answer;
  }

  #answer(read: Read): ReadAnswer {
    if (read.kind === "get") return { kind: "get", value: this.rows.get(toHex(read.key)) };
    if (read.kind !== "scan") throw new Error(`a step of a tree has a read of kind ${read.kind}`);
    const inside = [...this.rows].filter(([key]) => key >= toHex(read.low) && key < toHex(read.high)).sort(([a], [b]) => (a < b ? -1 : 1));
    const rows = inside.slice(0, read.rowsMax).map(([key, value]) => ({ key: fromHex(key) as Uint8Array, value }));
    return { kind: "scan", rows, more: inside.length > rows.length, deleted: 0 };
  }

  take(asked: Asked): Uint8Array {
    this.sent.push(asked.action as string);
    const { done, row } = this.step(stepOf(asked));
    return encodeTreeRow({ ...row, given: new Uint8Array([done ? 1 : 0, row ? 1 : 0]) });
  }

  held(): (readonly [key: string, row: TreeRow])[] {
    return [...this.rows].map(([key, value]) => [key, decodeTreeRow(value)] as const);
  }

  asRouter(): Router {
    const ask = async (_route: unknown, kind: OperationKind, repeatable: boolean): Promise<Outcome<RoutedAnswer>> => {
      const asked = kind.value as Asked;
      let answer = this.take(asked);
      if (asked.action === this.#lost) {
        this.#lost = undefined;
        this.#meanwhile();
        if (!repeatable) return unknownOutcome("unavailable", "connectionLost", "the connection broke");
        answer = this.take(asked);
      }
      const { given: [done, isThere] = [], ...row } = decodeTreeRow(answer) as { given?: Iterable<number> } & TreeRow;
      const value = { done: done === 1, refused: "", entries: [], more: false, rangeEnded: false };
      const result = { case: "tree", value: isThere === 1 ? { ...value, row: encodeTreeRow(row as TreeRow) } : value };
      return ok({ result, range: {}, giveBack: () => {} } as unknown as RoutedAnswer);
    };
    return { ask, routeOf: () => ({}) } as unknown as Router;
  }
}

test("trees: a creation whose decision had no answer, and was renamed since, is unknown: its file stays", async () => {
  const rows: Rows = new Rows("decide", () => {
    // Others move what was made: its entry is empty, and another one holds it.
    const [entry] = rows.held().filter(([, row]) => row.held !== undefined);
    assert.ok(entry);
    rows.rows.delete(entry[0]);
    rows.rows.set("elsewhere", encodeTreeRow({ held: entry[1].held as HeldEntry }));
  });
  const clock = new NodeClock();
  const world = { clock, random: new NodeRandom(), rules: allRules } as unknown as World;
  const trees = new Trees(world, rows.asRouter(), { requestTimeoutMs: 1_000 });
  const limits = { deadlineMs: clock.monotonicMs() + 60_000 };
  const result = await trees.run(tree, (context) => create(context, ["f"], "file"), limits);
  assert.deepEqual(result, { ok: false, refusal: "unknown" });
  assert.equal(
    rows.held().some(([, row]) => row.removed),
    false,
  );
});

test("trees: of a directory that is removed, with what is below it or replaced by a rename, no row stays", async () => {
  const rows = new Rows("none", () => {});
  class Local extends Trees {
    override async step(_tree: TreeName, step: Step): Promise<Outcome<StepAnswer>> {
      return ok(rows.step(step));
    }
  }
  const clock = new NodeClock();
  const world = { clock, random: new NodeRandom(), rules: allRules, logger: silentLogger } as unknown as World;
  const trees = new Local(world, rows.asRouter(), { requestTimeoutMs: 1_000 });
  const limits = { deadlineMs: clock.monotonicMs() + 60_000 };
  const make = async (...path: string[]): Promise<void> => {
    assert.ok((await trees.run(tree, (context) => create(context, path, "directory"), limits)).ok, path.join("/"));
  };
  await make("kept");
  const before = rows.held().length;
  await make("a");
  await make("a", "b");
  await make("a", "b", "c");
  assert.ok((await trees.run(tree, (context) => remove(context, ["a"], { kind: "directory", recursive: true }), limits)).ok);
  await make("empty");
  assert.ok((await trees.run(tree, (context) => rename(context, ["kept"], ["empty"], { replaces: true }), limits)).ok);
  await make("last");
  assert.ok((await trees.run(tree, (context) => remove(context, ["last"], { kind: "either", recursive: false }), limits)).ok);
  for (let look = 0; rows.held().length !== before && look < 2_000; look++) await new Promise((resolve) => setTimeout(resolve, 5));
  trees.end();
  assert.equal(rows.held().length, before);
});
