/**
 * Levels of fields, for processes of two releases that work together (docs/design/mixed-releases.md). A reader of protobuf skips a field that it
 * does not know. If a partition server skips one that changes what an operation means, it acknowledges something else than was asked; if a
 * front-end skips one of an answer, it tells the client something else than is stored. So each such field has the level of the release that
 * brought it, and:
 *
 * - the caller sends an operation that has one as `demanding`, which a server without levels takes for no operation at all, and refuses;
 * - a server refuses a demanding operation of a higher level than its own;
 * - a server refuses to answer a read with a field of a higher level than the caller's.
 *
 * Invariant: what needs no level travels as before, so ordinary operations go on while a stamp is changed process by process.
 */
import type { DescField, DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { FailureError, type Outcome, ok, refused } from "@stamp/base";
import { type Operation, OperationSchema } from "./gen/stamp/v1/objects_pb.ts";
import type { ExecuteRequestSchema } from "./gen/stamp/v1/partition_server_pb.ts";

/** Field level of this release. */
export const fieldLevel = 3;

type Levels = Readonly<Record<string, number>>;

/** By message and field. Of all other fields a server may know nothing: tests/golden/wire/fields.txt says why. */
export const operationLevels: Levels = {
  "Place.cipher": 1,
  "Cipher.units": 3,
  "Conditions.encryption_key_sha256": 1,
  "Conditions.encryption_scope": 1,
  "Conditions.encryption_as_found": 1,
  "Conditions.handle_id": 3,
  "PutBlockList.expected_bytes": 3,
  "PutBlockList.keeps_unnamed": 3,
  "CreateContainer.default_encryption_scope": 1,
  "CreateContainer.deny_encryption_scope_override": 1,
  "ChangeAccount.new_encryption_scope": 1,
  "ChangeAccount.encryption_scope_state": 1,
  "Account.encryption_scopes": 1,
  "BlobHeaders.content_type_cleared": 1,
  "Account.geo_role": 2,
  "PutAccount.expected_geo_role": 2,
  "PutAccount.expected_settings": 3,
  "BlobPolicy.hierarchical": 3,
  "ChangeAccount.geo_role": 2,
  "ChangeAccount.expected_geo_role": 2,
};

/** FeatureSet_FieldPresence.IMPLICIT of protobuf. */
const implicitPresence = 2;

type Fields = Readonly<Record<string, unknown>>;
/** Returns the highest level among the fields of a message that are set. */
type LevelOf = (message: Fields) => number;

const operationLevel = levelOf(OperationSchema, operationLevels);

/** Returns the fields of an ExecuteRequest that carry this operation. */
export function executeFields(
  operation: MessageInitShape<typeof OperationSchema>,
): Pick<MessageInitShape<typeof ExecuteRequestSchema>, "operation" | "demanding" | "callerLevel"> {
  const level = operationLevel?.(operation as Fields) ?? 0;
  return level === 0 ? { operation, callerLevel: fieldLevel } : { demanding: { level, operation }, callerLevel: fieldLevel };
}

/** Returns the operation of a request. Throws FailureError if it needs a release that knows more fields. */
export function operationOf(request: {
  readonly operation?: Operation | undefined;
  readonly demanding?: { readonly level: number; readonly operation?: Operation | undefined } | undefined;
}): Operation | undefined {
  const { demanding, operation } = request;
  if (demanding === undefined) return operation;
  if (demanding.level > fieldLevel) {
    const message = `an operation of level ${demanding.level}: this release knows level ${fieldLevel}, start the one that the caller runs`;
    throw new FailureError({ code: "failedPrecondition", reason: "newerFormat", message, applied: "no" });
  }
  return demanding.operation;
}

/** Refuses an answer of this level to a caller that would misread it. Only for reads, after which nothing has happened. */
export function answerable(level: number, callerLevel: number): Outcome<void> {
  if (level <= callerLevel) return ok();
  const message = `an answer of level ${level}: the caller knows level ${callerLevel}, start the release that this partition server runs`;
  return refused("failedPrecondition", "newerFormat", message);
}

/** Returns undefined if no message below this one has a field with a level. */
export function levelOf(schema: DescMessage, levels: Levels): LevelOf | undefined {
  const needed = reaching(schema, levels);
  const made = new Map<DescMessage, LevelOf>();
  return needed.has(schema) ? make(schema) : undefined;

  function make(desc: DescMessage): LevelOf {
    const parts: LevelOf[] = [];
    // Before its parts: a message may contain itself.
    const level: LevelOf = (message) => {
      let highest = 0;
      for (const part of parts) highest = Math.max(highest, part(message));
      return highest;
    };
    made.set(desc, level);
    for (const field of desc.fields) {
      const own = levels[nameOf(field)];
      const inner = field.message && needed.has(field.message) ? (made.get(field.message) ?? make(field.message)) : undefined;
      if (own !== undefined) parts.push((message) => (isSet(field, heldIn(field, message)) ? own : 0));
      if (inner === undefined) continue;
      parts.push((message) => {
        const value = heldIn(field, message);
        if (value === undefined) return 0;
        return field.fieldKind === "list" ? highestOf(value as readonly Fields[], inner) : inner(value as Fields);
      });
    }
    return level;
  }
}

function highestOf(values: readonly Fields[], level: LevelOf): number {
  let highest = 0;
  for (const value of values) highest = Math.max(highest, level(value));
  return highest;
}

/** Returns the messages from which a field with a level is reached. */
function reaching(schema: DescMessage, levels: Levels): ReadonlySet<DescMessage> {
  const all = messagesBelow(schema);
  const found = new Set<DescMessage>();
  for (let before = -1; before !== found.size; ) {
    before = found.size;
    for (const desc of all) {
      if (desc.fields.some((field) => nameOf(field) in levels || (field.message && found.has(field.message)))) found.add(desc);
    }
  }
  return found;
}

/** Returns the message type with all types that it may contain. */
export function messagesBelow(schema: DescMessage): ReadonlySet<DescMessage> {
  const all = new Set<DescMessage>([schema]);
  for (const desc of all) for (const { message } of desc.fields) if (message) all.add(message);
  return all;
}

export function nameOf(field: DescField): string {
  return `${field.parent.name}.${field.name}`;
}

function heldIn(field: DescField, message: Fields): unknown {
  if (field.oneof === undefined) return message[field.localName];
  const chosen = message[field.oneof.localName] as { readonly case?: string | undefined; readonly value?: unknown } | undefined;
  return chosen?.case === field.localName ? chosen.value : undefined;
}

/** True if the field is set. A field without presence counts as set if it differs from its default, as on the wire. */
export function isSet(field: DescField, value: unknown): boolean {
  if (value === undefined) return false;
  if (field.fieldKind === "list") return (value as readonly unknown[]).length > 0;
  if (field.fieldKind === "map") return Object.keys(value as object).length > 0;
  if (field.message || field.presence !== implicitPresence) return true;
  return value instanceof Uint8Array ? value.length > 0 : Boolean(value);
}
