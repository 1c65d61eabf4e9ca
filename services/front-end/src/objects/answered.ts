/** Turns answers of partition servers into values of the expected kind, or errors of the protocol. */
import { type Parsed, parsed, restError, restErrorOfService } from "@stamp/azure-rest";
import type { Outcome } from "@stamp/base";
import type { ResultKind, ResultValues } from "../routing/router.ts";
import { restErrorOf } from "./failures.ts";

export function answeredCase<C extends keyof ResultValues>(outcome: Outcome<ResultKind>, expected: C): Parsed<ResultValues[C]> {
  if (!outcome.ok) return { ok: false, error: restErrorOf(outcome.failure) };
  const result = outcome.value;
  if (result.case === "error") {
    return { ok: false, error: restErrorOfService(result.value.code, result.value.message, result.value.details) };
  }
  if (result.case !== expected) {
    const message = `A partition server answered ${result.case}, not ${expected}.`;
    return { ok: false, error: restError("InternalError", {}, { message }) };
  }
  return parsed(result.value as unknown as ResultValues[C]);
}
