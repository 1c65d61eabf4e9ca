/** One register: read, write, compare and set. `value` 0 is what it holds at first. */
import type { Model } from "../history.ts";

export type RegisterCall =
  | { readonly kind: "read"; readonly key?: string; readonly value: number | undefined }
  | { readonly kind: "write"; readonly key?: string; readonly value: number }
  /** `done` undefined: not known. */
  | { readonly kind: "cas"; readonly key?: string; readonly from: number; readonly to: number; readonly done: boolean | undefined };

export const registerModel: Model<number, RegisterCall> = {
  initial: 0,
  key: String,
  partition: (call) => call.key ?? "",
  step(state, call) {
    switch (call.kind) {
      case "read":
        return call.value === undefined || call.value === state ? state : undefined;
      case "write":
        return call.value;
      case "cas": {
        const may = state === call.from;
        if (call.done !== undefined && call.done !== may) return undefined;
        return may ? call.to : state;
      }
    }
  },
  readOnly: (call) => call.kind === "read" || (call.kind === "cas" && call.done === false),
  withoutAnswer: (call) => (call.kind === "read" ? undefined : call.kind === "cas" ? { ...call, done: undefined } : call),
  describe(call) {
    if (call.kind === "cas") return `cas ${call.from} to ${call.to} ${call.done === undefined ? "?" : call.done ? "done" : "refused"}`;
    return call.kind === "read" ? `read ${call.value ?? "?"}` : `write ${call.value}`;
  },
  describeState: (state) => `value ${state}`,
};
