/**
 * Rows of a tree and their values. Format: docs/formats/tree.md.
 *
 *   entry      what a name in a directory holds: a file or a directory, by id
 *   node       a directory or a file by its id: whether it is removed, what it is given
 *   move lock  no value of its own
 *
 * Invariants:
 * - an operation that changes several rows stands in one of them, its primary, an entry: begun there, then decided there, or given up;
 * - every other row that it changes has a mark with the operation's id and its primary, and holds what it held;
 * - a row has at most one of begun, decided and mark.
 */
import { FailureError, type Outcome, refused } from "@stamp/base";
import { decodeKey, encodeKey, type KeyElement } from "../rows/key.ts";
import { decodeRow, encodeRow, type Property } from "../rows/row.ts";

export type HeldKind = "file" | "directory";

/** File or directory that a name stands for. */
export interface HeldEntry {
  readonly kind: HeldKind;
  /** Id of the file or directory. It is never used again. */
  readonly id: string;
  /** Name as the client wrote it; the key has its folded form. */
  readonly name: string;
}

/** Place of a row in one tree. */
export type Address =
  | { readonly kind: "entry"; readonly directory: string; readonly name: string }
  | { readonly kind: HeldKind; readonly id: string }
  | { readonly kind: "lock" };
export type NodeAddress = Extract<Address, { id: string }>;
export type EntryAddress = Extract<Address, { kind: "entry" }>;

/**
 * Change of a marked row when its operation is decided: `take` empties an entry and removes a node, `release` leaves the row as it
 * was. `condemn` removes a node that has no mark of the operation.
 */
export type Fate = "take" | "release" | "condemn";

export interface Participant {
  readonly at: Address;
  readonly fate: Fate;
}

/** Operation of a tree, as its primary's row records it. */
export interface Operation {
  /** Never used again, not even by a second attempt. */
  readonly id: string;
  /** Time at which the operation was begun, in milliseconds since 1970. Only politeness depends on it. */
  readonly beganMs: number;
  /** File or directory at the primary once the operation is decided; undefined: none. */
  readonly next?: HeldEntry | undefined;
  readonly participants: readonly Participant[];
}

export interface Mark {
  readonly operation: string;
  readonly primary: EntryAddress;
}

export interface TreeRow {
  readonly held?: HeldEntry | undefined;
  readonly begun?: Operation | undefined;
  readonly decided?: Operation | undefined;
  readonly mark?: Mark | undefined;
  /** True if the node was removed: nothing can be put into it any more. */
  readonly removed?: boolean | undefined;
  /** Bytes that the door keeps with a node: access control list, metadata, times. */
  readonly given?: Uint8Array | undefined;
}

const property = <T extends Property["type"]>(id: number, type: T): Property<T> => ({ id, type });

/** Ids do not meet those of blobs, whose table has the rows too. */
export const treeSchema: {
  readonly heldKind: Property<"int32">;
  readonly heldId: Property<"string">;
  readonly heldName: Property<"string">;
  readonly stage: Property<"int32">;
  readonly operation: Property<"string">;
  readonly began: Property<"int64">;
  readonly participants: Property<"binary">;
  readonly nextKind: Property<"int32">;
  readonly nextId: Property<"string">;
  readonly nextName: Property<"string">;
  readonly primary: Property<"binary">;
  readonly removed: Property<"bool">;
  readonly given: Property<"binary">;
} = {
  heldKind: property(201, "int32"),
  heldId: property(202, "string"),
  heldName: property(203, "string"),
  stage: property(204, "int32"),
  operation: property(205, "string"),
  began: property(206, "int64"),
  participants: property(207, "binary"),
  nextKind: property(208, "int32"),
  nextId: property(209, "string"),
  nextName: property(210, "string"),
  primary: property(211, "binary"),
  removed: property(212, "bool"),
  given: property(213, "binary"),
};

const kinds: readonly HeldKind[] = ["file", "directory"];
const fates: readonly Fate[] = ["take", "release", "condemn"];
const stages = ["begun", "decided", "mark"] as const;
const addressKinds = ["entry", "directory", "file", "lock"] as const;

const elementsOf = (at: Address): KeyElement[] => {
  const kind = addressKinds.indexOf(at.kind);
  if (at.kind === "entry") return [kind, at.directory, at.name];
  return at.kind === "lock" ? [kind] : [kind, at.id];
};

/** Returns the text by which two addresses are equal or not. */
export const addressText = (at: Address): string => JSON.stringify(elementsOf(at));

export function encodeTreeRow(row: TreeRow): Uint8Array {
  const operation = row.begun ?? row.decided;
  const stage = row.begun ? 1 : row.decided ? 2 : row.mark ? 3 : undefined;
  // A row outlives the buffer of its encoding.
  return encodeRow(treeSchema, {
    heldKind: row.held && kinds.indexOf(row.held.kind) + 1,
    heldId: row.held?.id,
    heldName: row.held?.name,
    stage,
    operation: operation?.id ?? row.mark?.operation,
    began: operation && BigInt(operation.beganMs),
    participants: operation && encodeKey(operation.participants.map(({ at, fate }) => [fates.indexOf(fate), ...elementsOf(at)])),
    nextKind: operation?.next && kinds.indexOf(operation.next.kind) + 1,
    nextId: operation?.next?.id,
    nextName: operation?.next?.name,
    primary: row.mark && encodeKey([elementsOf(row.mark.primary)]),
    removed: row.removed || undefined,
    given: row.given,
  }).slice();
}

const damaged = (what: string): FailureError => new FailureError(refused("dataLoss", "damaged", `row of a tree: ${what}`).failure);

function intact<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw new FailureError(outcome.failure);
  return outcome.value;
}

/** Throws FailureError `damaged` for what encodeTreeRow never makes, or that of a newer format. */
export function decodeTreeRow(bytes: Uint8Array): TreeRow {
  const row = intact(decodeRow(treeSchema, bytes));
  const stage = row.stage === undefined ? undefined : stages[row.stage - 1];
  if (row.stage !== undefined && (stage === undefined || row.operation === undefined)) throw damaged(`stage ${row.stage}`);
  const held = heldOf(row.heldKind, row.heldId, row.heldName);
  const rest = {
    ...(held && { held }),
    ...(row.removed && { removed: true }),
    ...(row.given && { given: row.given.slice() }),
  };
  if (stage === undefined) return rest;
  const id = row.operation as string;
  if (stage === "mark") {
    const primary = addressOf(intact(decodeKey(row.primary ?? new Uint8Array(0)))[0] ?? []);
    if (primary.kind !== "entry") throw damaged("a primary is an entry");
    return { ...rest, mark: { operation: id, primary } };
  }
  const next = heldOf(row.nextKind, row.nextId, row.nextName);
  const operation: Operation = {
    id,
    beganMs: Number(row.began ?? 0n),
    ...(next && { next }),
    participants: intact(decodeKey(row.participants ?? new Uint8Array(0))).map(([fate, ...at]) => {
      const known = fates[fate as number];
      if (known === undefined) throw damaged(`fate ${fate}`);
      return { at: addressOf(at), fate: known };
    }),
  };
  return stage === "begun" ? { ...rest, begun: operation } : { ...rest, decided: operation };
}

function heldOf(kind: number | undefined, id: string | undefined, name: string | undefined): HeldEntry | undefined {
  if (kind === undefined) return undefined;
  const known = kinds[kind - 1];
  if (known === undefined || id === undefined || name === undefined) throw damaged(`kind ${kind}`);
  return { kind: known, id, name };
}

function addressOf(elements: readonly KeyElement[]): Address {
  const [code, first, second] = elements;
  const kind = addressKinds[code as number];
  if (kind === "entry" && typeof first === "string" && typeof second === "string") return { kind, directory: first, name: second };
  if ((kind === "directory" || kind === "file") && typeof first === "string") return { kind, id: first };
  if (kind === "lock") return { kind };
  throw damaged("an address");
}
