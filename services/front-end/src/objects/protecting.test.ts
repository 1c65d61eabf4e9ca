/**
 * A hold is placed while its container is deleted, in every order in which their steps can meet (docs/design/model/protect.pml has more
 * of each, by model). The rows and the plans are the real ones; only what lies between front-end and rows is left out.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, compareBytes, emptyBytes, ok, type Rules, rulesWithout, toHex } from "@stamp/base";
import { noPolicy, noSeals, type Operation, type PlanContext, planOf, type Read, type ReadAnswer, type RowEntry } from "@stamp/objects";
import type { CallLimits, OperationKind } from "../routing/router.ts";
import type { Objects } from "./objects.ts";
import { deleteContainer, executeProtecting } from "./protecting.ts";

const limits: CallLimits = { deadlineMs: 0 };
const text = { contentType: "", contentEncoding: "", contentLanguage: "", cacheControl: "", contentDisposition: "" };
const headers = { ...text, contentMd5: emptyBytes };
const where = { account: "a", container: "c" };

/** Messages as operations: whole numbers are bigint in one and number in the other. */
const numbers = (value: unknown): unknown => {
  if (typeof value === "bigint") return Number(value);
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return value;
  if (Array.isArray(value)) return value.map(numbers);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, numbers(inner)]));
};

class Rows {
  readonly #rows = new Map<string, RowEntry>();
  readonly #rules: Rules;
  #sequence = 0;

  constructor(rules: Rules) {
    this.#rules = rules;
  }

  run(operation: Operation) {
    const context: PlanContext = {
      rules: this.#rules,
      wallMs: 1_700_000_000_000,
      sequence: ++this.#sequence,
      range: { low: emptyBytes, high: emptyBytes },
      mayReferTo: () => true,
      policy: noPolicy,
      leases: { nowMs: 0, endsMs: () => 0 },
      queueMs: () => 0,
      receiptSecret: () => new Uint8Array(16),
      seals: noSeals,
      mayWrite: () => true,
    };
    const plan = planOf(operation, context);
    let step = plan.next();
    while (!step.done) step = plan.next(this.#read(step.value));
    for (const write of step.value.writes) {
      if (write.kind === "delete") this.#rows.delete(toHex(write.key));
      else this.#rows.set(toHex(write.key), write);
    }
    return step.value.result;
  }

  #read(read: Read): ReadAnswer {
    if (read.kind === "pause") return { kind: "pause" };
    if (read.kind === "get") return { kind: "get", value: this.#rows.get(toHex(read.key))?.value };
    const rows = [...this.#rows.values()].sort((a, b) => compareBytes(a.key, b.key));
    const found = rows.filter(({ key }) => compareBytes(key, read.low) >= 0 && compareBytes(key, read.high) < 0);
    if (read.kind === "scan") return { kind: "scan", rows: found, more: false, deleted: 0 };
    let at: Uint8Array | undefined = read.low;
    for (const row of found) if (at && compareBytes(row.key, at) >= 0) at = read.visit(row);
    return { kind: "walk" };
  }
}

/** Two actors; the schedule says whose next step is taken. */
class Stage {
  readonly rows: Rows;
  readonly #rules: Rules;
  readonly #waiting = new Map<string, () => void>();
  readonly steps: string[] = [];

  constructor(rules: Rules) {
    this.rows = new Rows(rules);
    this.#rules = rules;
  }

  objects(actor: string): Objects {
    const execute = async (kind: OperationKind) => {
      await new Promise<void>((resolve) => this.#waiting.set(actor, resolve));
      this.steps.push(`${actor}: ${kind.case}`);
      const result = this.rows.run(numbers(kind) as Operation);
      if (result.case !== "container") return result;
      const { incarnation, deletionBegun } = result.value;
      return { case: "begun" as const, value: { name: "c", incarnation: BigInt(incarnation), deletionBegun: BigInt(deletionBegun) } };
    };
    const parsed = async (kind: OperationKind) => {
      const result = await execute(kind);
      return result.case === "error"
        ? { ok: false, error: { code: result.value.code } }
        : ok(result.case === "begun" ? result.value : undefined);
    };
    const list = async (account: string, { name, incarnation }: { name: string; incarnation: bigint }, question: object) => {
      const found = await execute({
        case: "listBlobs",
        value: { account, container: name, containerIncarnation: incarnation, ...question },
      });
      assert.ok(found.case === "blobs");
      return ok({ entries: found.value.entries.map((kind) => ({ kind })), nextMarker: "" });
    };
    const container = () => parsed({ case: "getContainer", value: { ...where, conditions: {} } });
    const world = { rules: this.#rules };
    return {
      parts: { router: { execute: async (kind: OperationKind) => ok(await execute(kind)) }, world },
      execute: parsed,
      container,
      listBlobs: list,
    } as unknown as Objects;
  }

  async play(schedule: readonly string[], work: ReadonlyMap<string, Promise<unknown>>): Promise<void> {
    const done = new Set<string>();
    for (const [actor, promise] of work) void promise.finally(() => done.add(actor));
    for (let at = 0; done.size < work.size; ) {
      for (let turns = 0; turns < 12; turns++) await Promise.resolve();
      const ready = [...this.#waiting.keys()];
      const actor = ready.includes(schedule[at] ?? "") ? (schedule[at] as string) : ready[0];
      at++;
      if (actor === undefined) continue;
      const go = this.#waiting.get(actor);
      this.#waiting.delete(actor);
      go?.();
    }
  }
}

/** So many steps are ordered: all of the hold, and of the deletion those up to its second try. */
const stepsMax = 8;

/** Returns the breaches by order of steps; `marked`: something in the container was held before. */
async function everyOrder(rules: Rules, marked: boolean): Promise<string[]> {
  const broken: string[] = [];
  for (let order = 0; order < 2 ** stepsMax; order++) {
    const stage = new Stage(rules);
    const made = stage.rows.run({ case: "createContainer", value: { ...where, metadata: {}, publicAccess: "" } });
    assert.ok(made.case === "container");
    const containerIncarnation = BigInt(made.value.incarnation);
    const name = { ...where, containerIncarnation, blob: "b", snapshotStamp: 0n, versionStamp: 0n };
    const content = { headers, metadata: {}, body: { inline: emptyBytes, places: [] } };
    stage.rows.run(numbers({ case: "putBlob", value: { name, conditions: {}, ...content } }) as Operation);
    if (marked) stage.rows.run({ case: "markProtected", value: { ...where, incarnation: made.value.incarnation } });
    const hold: OperationKind = { case: "setLegalHold", value: { name, conditions: {}, hold: true } };
    const holding = executeProtecting(stage.objects("hold"), hold, limits);
    const deleting = deleteContainer(stage.objects("delete"), { ...where, conditions: {} }, () => limits);
    const schedule = Array.from({ length: stepsMax }, (_, i) => ((order >> i) & 1 ? "hold" : "delete"));
    await stage.play(
      schedule,
      new Map<string, Promise<unknown>>([
        ["hold", holding],
        ["delete", deleting],
      ]),
    );
    const held = await holding;
    const isHeld = held.ok && held.value.case === "blob";
    const isGone = (await deleting).ok;
    const there = stage.rows.run({ case: "getContainer", value: { ...where, conditions: {} } }).case === "container";
    assert.equal(there, !isGone, stage.steps.join(", "));
    if (isHeld === isGone) broken.push(`${isHeld ? "held and gone" : "neither held nor gone"}: ${stage.steps.join(", ")}`);
  }
  return [...new Set(broken)];
}

for (const marked of [false, true]) {
  test(`a hold beside the deletion of its container, ${marked ? "marked before" : "not marked"}: in every order one of them wins`, async () => {
    assert.deepEqual(await everyOrder(allRules, marked), []);
  });

  for (const rule of ["protectionConfirmed", "deletionAsksMarks"] as const) {
    test(`${rule} off, ${marked ? "marked before" : "not marked"}: an acknowledged hold is lost with its container`, async () => {
      const broken = await everyOrder(rulesWithout(rule), marked);
      assert.ok(broken.some((what) => what.startsWith("held and gone")));
    });
  }
}
