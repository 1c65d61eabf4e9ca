/** One request of `stamp trace` for a person, and the values of its options. Pure. */
import type { EndedRequest } from "@stamp/wire";
import { printable } from "../printable.ts";
import { kindOf, type ValueKind } from "../values.ts";

/** Bounds of a status: `404`, `4xx` or `400-499`. Undefined for other texts. */
export function statusesOf(text: string): { readonly statusMin: number; readonly statusMax: number } | undefined {
  const hundreds = /^([1-5])xx$/i.exec(text)?.[1];
  if (hundreds !== undefined) return { statusMin: Number(hundreds) * 100, statusMax: Number(hundreds) * 100 + 99 };
  const [, first, last = first] = /^([1-5]\d\d)(?:-([1-5]\d\d))?$/.exec(text) ?? [];
  const bounds = { statusMin: Number(first), statusMax: Number(last) };
  return first !== undefined && bounds.statusMin <= bounds.statusMax ? bounds : undefined;
}

export const statusKind: ValueKind = kindOf("4xx", (text) =>
  statusesOf(text) === undefined ? "a status (404), a class (4xx) or bounds (400-499)" : undefined,
);

/** Returns a line: time, status, milliseconds, operation, account, method and target, code of an error. The width before the target is kept. */
export function traceLine({
  endedMs,
  status,
  tookMs,
  operation,
  service,
  account,
  method,
  target,
  errorCode,
  requestId,
}: EndedRequest): string {
  const cells = [
    new Date(Number(endedMs)).toISOString().slice(11, 23),
    String(status),
    `${tookMs.toFixed(tookMs < 100 ? 1 : 0)} ms`.padStart(9),
    (operation === "" ? `(${service})` : operation).padEnd(20),
    (account === "" ? "-" : account).padEnd(16),
    `${method} ${target}`,
    ...(errorCode === "" ? [] : [errorCode]),
    requestId,
  ];
  return printable(cells.join("  "));
}
