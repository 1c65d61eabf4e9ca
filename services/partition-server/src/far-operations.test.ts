/**
 * Each operation on objects with every number at its maximum (32 bits as well as 64), at the server of its range, with names of things that are
 * there: no process ends, nothing is blocked, and the stamp serves. The operations are made from the descriptors, so a new one is among them.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescEnum, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { type ObjectTable, routeOf } from "@stamp/objects";
import { type Operation, OperationSchema, PartitionServer } from "@stamp/wire";
import { Client, container1, name, stamp, tableRange } from "./testing/stack-harness.ts";

const timeoutMs = 2_000;
const bits: Readonly<Partial<Record<ScalarType, 32 | 64>>> = {
  [ScalarType.UINT64]: 64,
  [ScalarType.INT64]: 64,
  [ScalarType.SINT64]: 64,
  [ScalarType.UINT32]: 32,
  [ScalarType.INT32]: 32,
  [ScalarType.SINT32]: 32,
};
const signed: ReadonlySet<ScalarType> = new Set([ScalarType.INT64, ScalarType.SINT64, ScalarType.INT32, ScalarType.SINT32]);
const depthMax = 6;

interface Filling {
  /** In each 64-bit field; a signed field takes at most 2^63 - 1. */
  readonly number: bigint;
  /** In each 32-bit field; a signed field takes at most 2^31 - 1. */
  readonly small: number;
  /** Length of each field of bytes. */
  readonly bytes: number;
  readonly texts: Readonly<Record<string, string>>;
  /** Numbers without which the operation is refused before it is looked at. */
  readonly right: Readonly<Record<string, bigint>>;
  /** Fields that stay empty. */
  readonly without: ReadonlySet<string>;
}

/** Each way to fill a message: one for each case of its oneofs, all else set. */
function* fillings(desc: DescMessage, filling: Filling, depth = 0): Generator<Message> {
  const cases = desc.oneofs.flatMap((oneof) => oneof.fields.map((field) => ({ oneof: oneof.localName, field })));
  const own = desc.fields.filter(({ oneof, localName }) => oneof === undefined && !filling.without.has(localName));
  const rest = Object.fromEntries(
    own.flatMap((field) =>
      valuesOf(field, filling, depth)
        .slice(0, 1)
        .map((value) => [field.localName, value]),
    ),
  );
  if (cases.length === 0) yield create(desc, rest);
  for (const { oneof, field } of cases) {
    for (const value of valuesOf(field, filling, depth))
      yield create(desc, { ...rest, [oneof]: { case: field.localName, value } } as never);
  }
}

function valuesOf(field: DescField, filling: Filling, depth: number): unknown[] {
  const { fieldKind } = field;
  if (fieldKind === "map" || depth > depthMax) return [];
  const inner = field.message
    ? [...fillings(field.message, filling, depth + 1)]
    : [field.enum ? lastOf(field.enum) : scalarOf(field, filling)];
  const values = inner.filter((value) => value !== undefined);
  return fieldKind === "list" ? [values.slice(0, 1)] : values;
}

const lastOf = ({ values }: DescEnum): number => values.at(-1)?.number ?? 0;

function scalarOf({ localName, scalar }: DescField, { number, small, bytes, texts, right }: Filling): unknown {
  if (scalar === undefined) return undefined;
  if (scalar === ScalarType.STRING) return texts[localName];
  if (scalar === ScalarType.BYTES) return new Uint8Array(bytes);
  if (scalar === ScalarType.BOOL) return true;
  if (bits[scalar] === 64) return right[localName] ?? (signed.has(scalar) && number >= 2n ** 63n ? 2n ** 63n - 1n : number);
  if (bits[scalar] === 32) return signed.has(scalar) ? Math.min(small, 2 ** 31 - 1) : small;
  return undefined;
}

const account = "devstoreaccount1";
const texts = {
  account,
  container: "c",
  queue: "q",
  table: "t",
  name: "n",
  partitionKey: "p",
  rowKey: "r",
  action: "acquire",
  proposedLeaseId: "11111111-1111-1111-1111-111111111111",
  option: "absolute",
  mode: "Unlocked",
  immutabilityMode: "Unlocked",
  tier: "Hot",
  where: "a = 'b'",
  copyId: "11111111-1111-1111-1111-111111111111",
  copier: "x",
  status: "pending",
  fromUrl: "http://127.0.0.1/c/b",
};
/** With them most writes are refused before their other numbers are looked at. */
const conditions = ["conditions", "sequence", "appendPosition", "maxSize", "ifTimestamp", "begun", "policy", "packedBlocks"];
/**
 * Fields that stay empty, one set after another: none; those that refuse most writes; and more, so that a body is
 * possible.
 */
const omissions: readonly (readonly string[])[] = [
  [],
  conditions,
  [...conditions, "cipher", "inline"],
  [...conditions, "places", "blocks"],
  [...conditions, "inline", "places", "blocks", "state", "sequenceNumber"],
];
const sizes: readonly Pick<Filling, "number" | "small" | "bytes">[] = [
  { number: BigInt(Number.MAX_SAFE_INTEGER), small: 2 ** 32 - 1, bytes: 0 },
  { number: 10n ** 15n, small: 2 ** 31, bytes: 31 },
  { number: 2n ** 64n - 1n, small: 2 ** 31 - 1, bytes: 32 },
  { number: 0n, small: 2 ** 32 - 1, bytes: 32 },
];

test("far operations: none ends a process, stops its range, or leaves a row that can't be read", async () => {
  const sim = stamp(43);
  await sim.run(async () => {
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
    const client = new Client(sim);
    let incarnation = await container1(client);
    const stranger = sim.world("stranger");
    const rules = sim.world("router").rules;
    // An operation on tables has another shape on the wire than inside.
    const tableOf = (kind: Operation["kind"]): ObjectTable => (kind.case === "table" ? "Entity" : routeOf(rules, kind as never).table);
    /** The failure, unless it passes by itself: ranges move to other servers. */
    const ask = async (operation: Operation): Promise<string> => {
      for (let tries = 0; ; tries++) {
        const { rangeId, rangeVersion, serverAddress } = await tableRange(sim, tableOf(operation.kind));
        const answer = await stranger.transport
          .client(serverAddress, PartitionServer)
          .execute({ rangeId, rangeVersion, operation, callerLevel: 1 }, { timeoutMs });
        if (answer.ok) return answer.value.result?.kind.case ?? "nothing";
        if (!["wrongPartition", "partitionLoading"].includes(answer.failure.reason)) return answer.failure.reason;
        if (tries > 500) return "timeout";
        await sim.sleep(20);
      }
    };
    const reads = (blob: string): Operation[] =>
      [
        { case: "getBlob", value: { name: name(blob, incarnation), withoutKey: true, withoutContent: true } },
        {
          case: "listBlobs",
          value: {
            account,
            container: "c",
            containerIncarnation: incarnation,
            prefix: blob,
            includeUncommitted: true,
            includeVersions: true,
            includeDeleted: true,
          },
        },
        { case: "getBlockList", value: { name: name(blob, incarnation), committed: true, uncommitted: true } },
        { case: "listContainers", value: { account, includeDeleted: true } },
        { case: "listAccounts", value: {} },
        { case: "queue", value: { kind: { case: "peekMessages", value: { queue: { account, queue: "q", incarnation: 1n }, count: 32 } } } },
        { case: "queue", value: { kind: { case: "listQueues", value: { account } } } },
        { case: "table", value: { kind: { case: "listTables", value: { account } } } },
      ].map((kind) => create(OperationSchema, { kind } as never));
    const wrong: string[] = [];
    let asked = 0;
    let written = 0;
    for (const size of sizes) {
      for (const blobType of ["BlockBlob", "AppendBlob", "PageBlob"]) {
        for (const without of omissions) {
          const right: Record<string, bigint> = without.length === 0 ? {} : { snapshotStamp: 0n, versionStamp: 0n };
          const named: Record<string, string> = { ...texts, blobType };
          // Prepares the names for the next operation.
          const next = async (): Promise<void> => {
            named.blob = `b${asked++}`;
            incarnation = await container1(client);
            Object.assign(right, { containerIncarnation: incarnation, incarnation });
            const value = { name: name(named.blob, incarnation), blobType, pageBlobBytes: blobType === "PageBlob" ? 4_096n : 0n };
            await client.execute({ case: "putBlob", value });
          };
          await next();
          for (const operation of fillings(OperationSchema, { ...size, texts: named, right, without: new Set(without) })) {
            const { kind } = operation as Operation;
            if (tableOf(kind) !== "Blob" && blobType !== "BlockBlob") continue;
            const inner = (kind.value as { readonly kind?: { readonly case: string } }).kind?.case ?? "";
            const what = `${kind.case} ${inner} ${blobType} ${size.number} without ${without}`;
            const came = await ask(operation as Operation);
            if (isWrong(came)) wrong.push(`${what}: ${came}`);
            if (!["error", "badRequest"].includes(came)) {
              written++;
              for (const read of reads(named.blob ?? "")) {
                const found = await ask(read);
                if (isWrong(found)) wrong.push(`after ${what}, ${read.kind.case}: ${found}`);
              }
            }
            await next();
          }
        }
      }
    }
    assert.ok(written > 200, `${written} operations did something`);
    assert.deepEqual(wrong, []);
    assert.equal((await client.execute({ case: "createContainer", value: { account, container: "after" } })).case, "container");
  });
});

const isWrong = (came: string): boolean => ["connectionLost", "bug", "internal", "timeout", "damaged", "nothing"].includes(came);
