/**
 * Text of an account's role in its row (docs/formats/account.md). The row's version (5) is the version of the text: an older
 * release refuses the row.
 */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import { type AccountRole, type GeoPoint, type GeoRole, roleWithoutRow } from "./account-role.ts";

const roles: readonly GeoRole[] = ["primary", "drained", "secondary", "unseeded", "removed"];

/** Members in a fixed order, so that equal roles have equal texts. */
export function encodeRole({ role, epoch, obeyed, peer, peerDoors, paired, promotedAt, queues, dropsQueues, report }: AccountRole): string {
  const { operation, phase } = obeyed;
  return JSON.stringify({
    role,
    epoch,
    obeyed: { operation, phase },
    peer,
    peerDoors,
    paired,
    promotedAt: promotedAt === undefined ? undefined : pointOf(promotedAt),
    queues: queues === true ? true : undefined,
    dropsQueues: dropsQueues === true ? true : undefined,
    report: report === undefined ? undefined : { from: pointOf(report.from), complete: report.complete },
  });
}

const pointOf = (point: GeoPoint): GeoPoint => point.map(({ range, sequence }) => ({ range, sequence }));

/** Decodes the role of an account; empty text: the account has no role. */
export function decodeRole(text: string): Outcome<AccountRole | undefined> {
  if (text === "") return ok(undefined);
  const role = parsed(text);
  return isRole(role) ? ok(role) : refused("dataLoss", "damaged", "the role of an account in its row");
}

/** Returns the role that the text in an account's row says; without a text that of an account without a role. */
export function roleOf(text: string): Outcome<AccountRole> {
  const role = decodeRole(text);
  return role.ok ? ok(role.value ?? roleWithoutRow) : role;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRole(value: unknown): value is AccountRole {
  if (typeof value !== "object" || value === null) return false;
  const { role, epoch, obeyed, peer, peerDoors, paired, promotedAt, report } = value as Partial<Record<keyof AccountRole, unknown>>;
  return (
    roles.includes(role as GeoRole) &&
    Number.isSafeInteger(epoch) &&
    isOrder(obeyed) &&
    (peer === undefined || typeof peer === "string") &&
    (peerDoors === undefined || (Array.isArray(peerDoors) && peerDoors.every((door) => typeof door === "string"))) &&
    (paired === undefined || Number.isSafeInteger(paired)) &&
    (promotedAt === undefined || isPoint(promotedAt)) &&
    (report === undefined || isReport(report))
  );
}

function isOrder(value: unknown): boolean {
  const { operation, phase } = (value ?? {}) as { operation?: unknown; phase?: unknown };
  return Number.isSafeInteger(operation) && Number.isSafeInteger(phase);
}

const isPoint = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one?.range === "string" && Number.isSafeInteger(one.sequence));

function isReport(value: unknown): boolean {
  const { from, complete } = (value ?? {}) as { from?: unknown; complete?: unknown };
  return isPoint(from) && typeof complete === "boolean";
}
