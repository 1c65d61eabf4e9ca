/**
 * Operations on trees of directories: runs the machines of packages/tree, whose steps go to the partition servers of their rows. An operation
 * that meets another one under way waits for it, up to its deadline.
 *
 * Invariants:
 * - A step that may be taken once only is sent once (rule `treeAttemptsFresh`).
 * - An operation goes on when its client goes away: what it leaves half done would hold up others.
 */
import { FailureError, type Outcome, ok, toHex } from "@stamp/base";
import { isShareContainer, type NodeAddress, type Step, type StepAnswer, type TreeName } from "@stamp/objects";
import { sleep, type World } from "@stamp/ports";
import { collect, dataLakeNames, ended, filesNames, forget, freed, type Machine, type MachineContext, type Result } from "@stamp/tree";
import { fromWire } from "@stamp/wire";
import type { CallLimits, OperationKind, ResultKind, Router } from "../routing/router.ts";
import { RemovedDirectories, type TakenBelow } from "./removed-directories.ts";
import { isRepeatable, stepAnswerFromWire, stepToWire } from "./tree-steps.ts";

/** Id of the root directory of every filesystem. */
export const rootId = "root";
/** Time that a coordinator is given before others give its operation up, in milliseconds. It decides nothing: see docs/design/tree.md. */
const coordinatorTermMs = 5_000;
const waitFirstMs = 10;
const waitMaxMs = 250;
const idBytes = 16;
/** Entries of a removed directory that one turn of the collector takes. */
const collectedAtOnce = 64;

export class Trees {
  readonly #world: World;
  readonly #router: Router;
  readonly #timeoutMs: number;
  readonly #removed: RemovedDirectories;

  constructor(world: World, router: Router, { requestTimeoutMs }: { readonly requestTimeoutMs: number }) {
    this.#world = world;
    this.#router = router;
    this.#timeoutMs = requestTimeoutMs;
    this.#removed = new RemovedDirectories(world, (tree, directory) => this.#collectSome(tree, directory));
  }

  newId(): string {
    return toHex(this.#world.random.bytes(idBytes));
  }

  /** Runs the machine, again while another operation is under way. Throws FailureError for rows that can't be read. */
  async run<T>(tree: TreeName, make: (context: MachineContext) => Machine<T>, { deadlineMs, cause }: CallLimits): Promise<Result<T>> {
    const { clock } = this.#world;
    for (let waitMs = waitFirstMs; ; waitMs = Math.min(waitMaxMs, waitMs * 2)) {
      const result = await this.#once(tree, ended(make(this.#context(tree))), { deadlineMs, cause });
      if (result.ok || result.refusal !== "busy" || clock.monotonicMs() + waitMs >= deadlineMs) return result;
      await sleep(clock, waitMs);
    }
  }

  /** Takes one step by itself. */
  async step(tree: TreeName, step: Step, { deadlineMs, cause }: CallLimits): Promise<Outcome<StepAnswer>> {
    // A client that goes away leaves no step half done.
    const limits = { deadlineMs, cause };
    return step.kind === "page" ? this.#page(tree, step, limits) : this.#take(tree, step, limits);
  }

  /** Finishes or gives up what is under way on the node of a file or directory, so that it can be written. */
  async settle(tree: TreeName, id: string, limits: CallLimits): Promise<void> {
    for (const kind of ["file", "directory"] as const) await this.run(tree, (context) => freed(context, { kind, id }), limits);
  }

  /** Lets the node and the blob go of what was made and has no name. The collector of partition servers takes a file that is removed. */
  async discard(tree: TreeName, at: NodeAddress, limits: CallLimits): Promise<void> {
    await this.step(tree, { kind: "make", at }, limits);
    await this.step(tree, { kind: "condemn", at, operation: at.id }, limits);
    if (at.kind === "directory") await this.step(tree, { kind: "forget", at }, limits);
  }

  /** Takes what hangs below a removed directory, in the background. */
  collect(tree: TreeName, directory: string): void {
    this.#removed.add(tree, directory);
  }

  /** Ends the work in the background. */
  end(): void {
    this.#removed.end();
  }

  async #collectSome(tree: TreeName, directory: string): Promise<TakenBelow> {
    const limits = { deadlineMs: this.#world.clock.monotonicMs() + this.#timeoutMs };
    const removed = new Set<string>();
    const context = this.#context(tree, (each) => removed.add(each));
    const collected = await this.#once(tree, ended(collect(context, directory, collectedAtOnce)), limits);
    const below = [...removed];
    if (!collected.ok) return { end: "later", below };
    const { taken, more } = collected.value;
    if (more) return { end: taken > 0 ? "more" : "later", below };
    // Its entries are gone, and nothing comes into a removed directory.
    const forgotten = await this.run(tree, (context) => forget(context, directory), limits);
    return { end: forgotten.ok ? "done" : "later", below };
  }

  #context(tree: TreeName, removed = (directory: string): unknown => this.collect(tree, directory)): MachineContext {
    const nowMs = this.#world.clock.wallMs();
    return {
      rules: this.#world.rules,
      names: isShareContainer(tree.filesystem) ? filesNames : dataLakeNames,
      root: rootId,
      newId: () => this.newId(),
      nowMs,
      removed,
      // A clock that went back must not keep an operation for ever.
      mayGiveUp: ({ beganMs }) => Math.abs(nowMs - beganMs) > coordinatorTermMs,
    };
  }

  async #once<T>(tree: TreeName, machine: Machine<Result<T>>, limits: CallLimits): Promise<Result<T>> {
    let turn = machine.next();
    while (!turn.done) {
      const answers = await Promise.all(turn.value.map((step) => this.step(tree, step, limits)));
      turn = machine.next(answers.map((answer) => (answer.ok ? answer.value : undefined)));
    }
    return turn.value;
  }

  async #take(tree: TreeName, step: Step, limits: CallLimits): Promise<Outcome<StepAnswer>> {
    const kind = stepToWire(tree, step);
    const answer = await this.#router.ask(this.#router.routeOf(kind), kind, isRepeatable(step), limits);
    if (!answer.ok) return answer;
    const { result, giveBack } = answer.value;
    if (result.case !== "tree") return { ok: false, failure: notTree(result.case) };
    const taken = stepAnswerFromWire(result.value);
    giveBack();
    return ok(taken);
  }

  /** Goes over the ranges of a directory until there is an entry, or no range is left. */
  async #page(tree: TreeName, step: Extract<Step, { kind: "page" }>, limits: CallLimits): Promise<Outcome<StepAnswer>> {
    const kind = stepToWire(tree, step);
    let route = this.#router.routeOf(kind);
    for (;;) {
      const answer = await this.#router.executeAt(route, kind, limits);
      if (!answer.ok) return answer;
      const { result, range } = answer.value;
      if (result.case !== "tree") return { ok: false, failure: notTree(result.case) };
      const page = stepAnswerFromWire(result.value);
      const ranOut = page.rangeEnded === true && range.high.length > 0;
      if (!ranOut || (page.rows?.length ?? 0) > 0) return ok({ ...page, more: page.more === true || ranOut });
      route = { table: route.table, key: range.high };
    }
  }
}

const notTree = (found: string) =>
  new FailureError({ code: "internal", reason: "bug", message: `a step of a tree was answered by ${found}`, applied: "unknown" }).failure;

/** Number of times that a write may meet an operation on its file's name. */
const settledMax = 16;

/** Runs a write to the blob of a file again when the operation of the tree is over that holds the file. */
export async function whenSettled(
  trees: Trees,
  kind: OperationKind,
  limits: CallLimits,
  work: () => Promise<Outcome<ResultKind>>,
): Promise<Outcome<ResultKind>> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await work();
    const isHeld = !outcome.ok && outcome.failure.reason === "conflict" && limits.policy?.hierarchical === true;
    if (!isHeld || attempt === settledMax || !("name" in kind.value)) return outcome;
    const { account = "", container = "", containerIncarnation = 0n, blob = "" } = kind.value.name ?? {};
    await trees.settle({ account, filesystem: container, incarnation: fromWire(containerIncarnation) }, blob, limits);
  }
}
