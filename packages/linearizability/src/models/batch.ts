/**
 * Cells that are written by batches and read several at a time. A batch names what each of its cells must hold and what it holds then; it
 * is done whole or not at all. A read saw all of its cells at one moment. Cells are numbered from 0, what they hold too; 0 is what each
 * holds at first (or that it is not there).
 */
import type { Model } from "../history.ts";

export interface CellChange {
  readonly cell: number;
  readonly from: number;
  readonly to: number;
}

export type BatchCall =
  /** `done` undefined: not known. False: refused, because a cell held something else. */
  | { readonly kind: "batch"; readonly changes: readonly CellChange[]; readonly done: boolean | undefined }
  /** The cells from `first` on, without a gap. */
  | { readonly kind: "read"; readonly first: number; readonly values: readonly number[] };

export const batchModel = (cells: number): Model<readonly number[], BatchCall> => ({
  initial: Array.from({ length: cells }, () => 0),
  key: (state) => state.join(),
  step(state, call) {
    if (call.kind === "read") return call.values.every((value, i) => state[call.first + i] === value) ? state : undefined;
    const may = call.changes.every(({ cell, from }) => state[cell] === from);
    if (call.done !== undefined && call.done !== may) return undefined;
    if (!may) return state;
    const next = [...state];
    for (const { cell, to } of call.changes) next[cell] = to;
    return next;
  },
  readOnly: (call) => call.kind === "read" || call.done === false,
  withoutAnswer: (call) => (call.kind === "read" ? undefined : { ...call, done: undefined }),
  describe(call) {
    if (call.kind === "read") return `read ${call.first}: ${call.values.join(" ")}`;
    const changes = call.changes.map(({ cell, from, to }) => `${cell}: ${from}→${to}`).join(", ");
    return `batch ${changes} ${call.done === undefined ? "?" : call.done ? "done" : "refused"}`;
  },
  describeState: (state) => state.join(" "),
});
