/** Refusal of an operation that came over the wire without a part that must be there. */
import { FailureError } from "@stamp/base";

export const missing = (what: string): FailureError =>
  new FailureError({ code: "invalidArgument", reason: "badRequest", message: `an operation without ${what}`, applied: "no" });
