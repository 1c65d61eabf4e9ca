/**
 * A scenario is one operation of the API, done again and again. The table of peers (`stamp bench`) and the budget (`stamp bench --budget`) run
 * the same ones.
 */
import type { BlobResult } from "@stamp/drills";

export interface Scenario {
  readonly name: string;
  /** Bytes of content that one operation moves; 0 where they are not what matters. */
  readonly contentBytes: number;
  /** Operation of the yardstick that the budget compares the scenario with. */
  readonly like: { readonly method: "PUT" | "GET"; readonly bytes: number };
  /** True if the scenario has a bounded number of operations: few of them go to the warm-up. */
  readonly isLimited?: true;
  /** Makes what the operation needs, unless an earlier process made it. */
  prepare(): Promise<void>;
  /** `number` rises by one with each call in this process. Throws if the operation was not done. False: nothing is left to do. */
  operation(number: number): Promise<boolean>;
}

export interface Scenarios {
  readonly all: readonly Scenario[];
  close(): void;
}

/** Texts that tell the names of one process from those of others. */
export interface NameSpace {
  /** Container and start of table and queue names: the same for all processes of one run. */
  readonly shared: string;
  /** Name that differs in each process. */
  readonly own: string;
}

export const kib = 1024;
export const mib = 1024 * kib;

export interface BenchAnswer {
  readonly status?: number;
  readonly body?: Buffer;
  readonly why?: string;
}

export const answered = (result: BlobResult): BenchAnswer => result;

/** Throws unless the answer has one of these codes. */
export function mustAnswer(answer: BenchAnswer, ...wanted: readonly number[]): true {
  if (wanted.includes(answer.status ?? 0)) return true;
  throw new Error(`${answer.status ?? answer.why ?? "no answer"} ${answer.body?.toString("utf8").slice(0, 200) ?? ""}`);
}

export async function allAtOnce(count: number, concurrency: number, operation: (number: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      while (next < count) await operation(next++);
    }),
  );
}
