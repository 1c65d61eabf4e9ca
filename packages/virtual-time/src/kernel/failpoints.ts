/**
 * Failpoints: named moments at which something may be made to happen to a process, at each persist, send and receive. The name says
 * who and what: `extent-node sync journal/# before`, `lock-service send …`, so that a report can say which were reached and struck, and how often.
 *
 *   persist   before it is done, and after it was done and before the process learns of it
 *   send      a request leaves, or is lost on its way
 *   receive   a request arrives, and its handler has not begun
 *   answer    an answer leaves, or is lost with its connection
 *
 * Which names are hot is chosen by the seed: most runs strike few points often, because some promises are broken only by the same
 * thing at the same point again.
 */
import type { Prng } from "@stamp/base";

export type FailAction = "kill" | "power" | "pause" | "delay" | "error";

export interface FailpointOptions {
  /** Share of the names that are hot. */
  readonly hotShare: number;
  /** Chance that a hot failpoint strikes when it is reached. */
  readonly hotChance: number;
  readonly weights: Readonly<Record<FailAction, number>>;
  /** Bound of the time that a delay holds a connection or a write. */
  readonly delayMaxMs: number;
  /** How long a process is paused at most. */
  readonly pauseMaxMs: number;
  /** Pattern of the failpoints that act; undefined: all do. */
  readonly only?: RegExp | undefined;
}

export const defaultFailpoints: FailpointOptions = {
  hotShare: 0.05,
  hotChance: 0.02,
  delayMaxMs: 2_000,
  pauseMaxMs: 8_000,
  weights: { kill: 3, power: 2, pause: 1, delay: 6, error: 2 },
};

interface Point {
  reached: number;
  struck: number;
  readonly hot: boolean;
}

export class Failpoints {
  readonly #prng: Prng;
  readonly #points = new Map<string, Point>();
  #options: FailpointOptions | undefined;

  constructor(prng: Prng) {
    this.#prng = prng;
  }

  arm(options: FailpointOptions): void {
    this.#options = options;
  }

  disarm(): void {
    this.#options = undefined;
  }

  get delayMaxMs(): number {
    return this.#options?.delayMaxMs ?? defaultFailpoints.delayMaxMs;
  }

  get pauseMaxMs(): number {
    return this.#options?.pauseMaxMs ?? defaultFailpoints.pauseMaxMs;
  }

  /** Returns the action to take now; undefined if none. */
  at(name: string): FailAction | undefined {
    const options = this.#options;
    let point = this.#points.get(name);
    if (!point) {
      const may = options !== undefined && (options.only === undefined || options.only.test(name));
      point = { reached: 0, struck: 0, hot: may && this.#prng.chance(options.hotShare) };
      // A point that was first reached before they were armed is chosen when it is reached again.
      if (options !== undefined) this.#points.set(name, point);
    }
    point.reached += 1;
    if (options === undefined || !point.hot || !this.#prng.chance(options.hotChance)) return undefined;
    point.struck += 1;
    return this.#action(options.weights);
  }

  /** Returns, by name, how often a point was reached while armed, and struck. */
  hits(): Record<string, { readonly reached: number; readonly struck: number }> {
    return Object.fromEntries([...this.#points].map(([name, { reached, struck }]) => [name, { reached, struck }]));
  }

  #action(weights: Readonly<Record<FailAction, number>>): FailAction | undefined {
    const all = Object.entries(weights) as [FailAction, number][];
    let left = this.#prng.float() * all.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [action, weight] of all) {
      left -= weight;
      if (left < 0) return action;
    }
    return undefined;
  }
}

const shapes = new Map<string, string>();

/** Returns a path without its numbers, a method without its package, so that all journal segments are one point. */
export function shapeOf(text: string): string {
  let shape = shapes.get(text);
  if (shape === undefined) {
    shape = text
      .replace(/^stamp\.v\d+\./, "")
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "#")
      .replace(/\d+/g, "#");
    if (shapes.size < 100_000) shapes.set(text, shape);
  }
  return shape;
}
