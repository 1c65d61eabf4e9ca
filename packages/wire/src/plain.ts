/**
 * Messages whose fields are the domain's, name by name, become plain values and back without a line per field. 64-bit numbers are bigint
 * in messages and safe integers in plain values. What has a oneof, or is not the same on both sides, is converted by hand.
 */
import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { fromWire } from "./numbers.ts";
import { initByName, plainByName } from "./plain-by-name.ts";
import { compiledInit, compiledPlain } from "./plain-compiled.ts";

/** Content of a message, without the fields that protobuf-es adds. */
export type Plain<T> = T extends bigint
  ? number
  : T extends Uint8Array | string | number | boolean | undefined
    ? T
    : T extends readonly (infer E)[]
      ? readonly Plain<E>[]
      : { readonly [K in keyof T as K extends "$typeName" | "$unknown" ? never : K]: Plain<T[K]> };

/** Returns the plain value; bytes are shared with the message. Throws FailureError `badRequest` for a number that is not a safe integer. */
export function plainOf<T>(message: T): Plain<T> {
  return (mayCompile ? plainQuickly(message) : plainByName(message)) as Plain<T>;
}

/** True unless the process was started with --disallow-code-generation-from-strings. */
const mayCompile = ((): boolean => {
  try {
    return new Function("return true")() as boolean;
  } catch {
    return false;
  }
})();

function plainQuickly(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return typeof value === "bigint" ? fromWire(value) : value;
  const typeName = (value as { readonly $typeName?: unknown }).$typeName;
  if (typeof typeName === "string") {
    const compiled = compiledPlain(typeName, plainQuickly);
    return compiled === undefined ? plainByName(value) : compiled(value);
  }
  const { case: name, value: held } = value as { readonly case?: unknown; readonly value?: unknown };
  // Content of a oneof; `value` is absent if it is empty.
  if (typeof name === "string") return { case: name, value: plainQuickly(held) };
  return plainByName(value);
}

/** Returns a value that `create(schema, …)` takes. */
export const initOf = <S extends DescMessage>(schema: S, value: object): MessageInitShape<S> =>
  (mayCompile ? compiledInit(schema)(value) : initByName(schema, value)) as MessageInitShape<S>;
