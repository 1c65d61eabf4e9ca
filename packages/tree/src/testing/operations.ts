/** Operations of tests, on a world, whole or as far as a step. */

import { allRules, type Rules } from "@stamp/base";
import type { Step } from "@stamp/objects";
import { ended, type Machine, type MachineContext, type Result } from "../machine.ts";
import { dataLakeNames, type NameRules } from "../names.ts";
import { rootId, type World } from "./world.ts";

let ids = 0;

/** Context of an operation that gives up whatever it meets. */
export const contextOf = (rules: Rules = allRules, names: NameRules = dataLakeNames): MachineContext => ({
  rules,
  names,
  root: rootId,
  newId: () => `t${++ids}`,
  nowMs: 1_000,
  mayGiveUp: () => true,
});

export const path = (text: string): string[] => (text === "" ? [] : text.split("/"));

/** An operation that stops before a step, and goes on later. */
export class Stopped<T> {
  readonly #world: World;
  readonly #machine: Machine<Result<T>>;
  #turn: IteratorResult<readonly Step[], Result<T>>;

  constructor(world: World, machine: Machine<T>) {
    this.#world = world;
    this.#machine = ended(machine);
    this.#turn = this.#machine.next();
  }

  /** Goes on until it is about to take a step of this kind; at the end if it takes none. */
  before(kind: Step["kind"]): this {
    while (!this.#turn.done && this.#turn.value[0]?.kind !== kind) this.one();
    return this;
  }

  one(): this {
    if (!this.#turn.done) this.#turn = this.#machine.next(this.#turn.value.map((step) => this.#world.step(step)));
    return this;
  }

  /** Has no answer to its next steps, which are returned: they may arrive later. */
  lose(): readonly Step[] {
    const steps = this.#turn.done ? [] : this.#turn.value;
    if (!this.#turn.done) this.#turn = this.#machine.next(steps.map(() => undefined));
    return steps;
  }

  get isOver(): boolean {
    return this.#turn.done === true;
  }

  end(): Result<T> {
    while (!this.#turn.done) this.one();
    return this.#turn.value;
  }
}
