/**
 * Shared by the conformance suites. A suite is a function that registers tests: it is given the registrar of a test
 * runner (or of a simulation, which runs each test on virtual time) and a factory of the implementation. Suites use
 * ports only, so that a real and a simulated implementation pass the very same one. Files: `*.conformance.ts`.
 */
import { equalBytes, FailureError } from "@stamp/base";

export type RegisterTest = (name: string, run: () => Promise<void>) => void;

export class ConformanceError extends Error {
  override readonly name = "ConformanceError";
}

export function check(condition: boolean, what: string): asserts condition {
  if (!condition) throw new ConformanceError(what);
}

function show(value: unknown): string {
  if (value instanceof Uint8Array) return `bytes[${value.length}] ${[...value.subarray(0, 16)].join(",")}`;
  if (typeof value === "bigint") return `${value}n`;
  return JSON.stringify(value, (_key, inner: unknown) => (typeof inner === "bigint" ? `${inner}n` : inner)) ?? String(value);
}

/** True if two scalars, byte arrays or arrays of them are equal. */
function same(actual: unknown, expected: unknown): boolean {
  if (actual instanceof Uint8Array && expected instanceof Uint8Array) return equalBytes(actual, expected);
  if (Array.isArray(actual) && Array.isArray(expected)) {
    return actual.length === expected.length && actual.every((item, i) => same(item, expected[i]));
  }
  return Object.is(actual, expected);
}

export function checkEqual(actual: unknown, expected: unknown, what: string): void {
  if (!same(actual, expected)) throw new ConformanceError(`${what}: expected ${show(expected)}, got ${show(actual)}`);
}

/** Returns the error that `work` throws; fails if it does not throw. */
export async function thrownBy(work: () => Promise<unknown>, what: string): Promise<unknown> {
  try {
    await work();
  } catch (error) {
    return error;
  }
  throw new ConformanceError(`${what}: nothing was thrown`);
}

export async function thrownFailure(work: () => Promise<unknown>, what: string): Promise<FailureError> {
  const error = await thrownBy(work, what);
  check(error instanceof FailureError, `${what}: expected a FailureError, got ${String(error)}`);
  return error;
}
