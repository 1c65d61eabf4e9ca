/** Trees over a router whose answers are lost. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Outcome, ok, toHex, unknownOutcome } from "@stamp/base";
import {
  addressOfPlace,
  decodeTreeRow,
  encodeTreeRow,
  type HeldEntry,
  planOfStep,
  type Step,
  type TreeName,
  type TreeRow,
} from "@stamp/objects";
import type { World } from "@stamp/ports";
import { NodeClock, NodeRandom } from "@stamp/ports-node";
import { create } from "@stamp/tree";
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

  take(asked: Asked): Uint8Array {
    this.sent.push(asked.action as string);
    const range = { low: new Uint8Array(0), high: new Uint8Array(0) };
    const conditionsOf = () => {
      throw new Error("a creation has no conditions");
    };
    const plan = planOfStep({ tree, rules: allRules, range, conditionsOf }, stepOf(asked));
    let turn = plan.next();
    while (!turn.done) {
      if (turn.value.kind !== "get") throw new Error("a creation reads single rows");
      turn = plan.next({ kind: "get", value: this.rows.get(toHex(turn.value.key)) });
    }
    for (const write of turn.value.writes) {
      if (write.kind === "delete") this.rows.delete(toHex(write.key));
      else this.rows.set(toHex(write.key), write.value);
    }
    const { done, row } = turn.value.answer;
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
