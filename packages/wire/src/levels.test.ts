import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  clone,
  create,
  createFileRegistry,
  type DescMessage,
  fromBinary,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { FailureError } from "@stamp/base";
import * as wire from "./index.ts";
import { type BlobPolicySchema, ExecuteRequestSchema, file_stamp_v1_partition_server, type OperationSchema } from "./index.ts";
import { answerable, executeFields, fieldLevel, messagesBelow, nameOf, operationLevels, operationOf } from "./levels.ts";

type Operation = MessageInitShape<typeof OperationSchema>;
type Kind = NonNullable<Operation["kind"]>;

const name = { account: "a", container: "c", containerIncarnation: 5n, blob: "b" };
const place = { extentId: 7n, offsetBytes: 24n, lengthBytes: 100 };
const cipher = { salt: new Uint8Array(32).fill(1), offsetBytes: 0n };
const encrypted = { ...place, cipher };
const inUnits = { ...place, cipher: { ...cipher, units: { unitBytes: 512, writeBytes: 100n } } };
const scope = { name: "s", key: new Uint8Array(32), disabled: false };

/** For each field with a level, an operation that differs in nothing else from one that needs none. */
interface Demanding {
  readonly without: Kind;
  readonly with: Kind;
  /** Part of the policy that goes with it. */
  readonly policy?: MessageInitShape<typeof BlobPolicySchema>;
}
const demanding: Readonly<Record<string, Demanding>> = {
  "Place.cipher": {
    without: { case: "putBlob", value: { name, body: { places: [place, place] } } },
    with: { case: "putBlob", value: { name, body: { places: [place, encrypted] } } },
  },
  "Cipher.units": {
    without: { case: "putBlob", value: { name, body: { places: [place] } } },
    with: { case: "putBlob", value: { name, body: { places: [inUnits] } } },
  },
  "Conditions.encryption_key_sha256": {
    without: { case: "getBlob", value: { name, conditions: { ifMatch: "*" } } },
    with: { case: "getBlob", value: { name, conditions: { ifMatch: "*", encryptionKeySha256: new Uint8Array(0) } } },
  },
  "Conditions.encryption_scope": {
    without: { case: "putBlob", value: { name, conditions: {} } },
    with: { case: "putBlob", value: { name, conditions: { encryptionScope: "s" } } },
  },
  "Conditions.encryption_as_found": {
    without: { case: "appendBlock", value: { name, conditions: { encryptionAsFound: false } } },
    with: { case: "appendBlock", value: { name, conditions: { encryptionAsFound: true } } },
  },
  "Conditions.handle_id": {
    without: { case: "putPages", value: { name, conditions: {} } },
    with: { case: "putPages", value: { name, conditions: { handleId: "1" } } },
  },
  "PutBlockList.expected_bytes": {
    without: { case: "putBlockList", value: { name } },
    with: { case: "putBlockList", value: { name, expectedBytes: 0n } },
  },
  "PutBlockList.keeps_unnamed": {
    without: { case: "putBlockList", value: { name, keepsUnnamed: false } },
    with: { case: "putBlockList", value: { name, keepsUnnamed: true } },
  },
  "CreateContainer.default_encryption_scope": {
    without: { case: "createContainer", value: { account: "a", container: "c", defaultEncryptionScope: "" } },
    with: { case: "createContainer", value: { account: "a", container: "c", defaultEncryptionScope: "s" } },
  },
  "CreateContainer.deny_encryption_scope_override": {
    without: { case: "createContainer", value: { account: "a", container: "c", denyEncryptionScopeOverride: false } },
    with: { case: "createContainer", value: { account: "a", container: "c", denyEncryptionScopeOverride: true } },
  },
  "ChangeAccount.new_encryption_scope": {
    without: { case: "changeAccount", value: { account: "a" } },
    with: { case: "changeAccount", value: { account: "a", newEncryptionScope: scope } },
  },
  "ChangeAccount.encryption_scope_state": {
    without: { case: "changeAccount", value: { account: "a" } },
    with: { case: "changeAccount", value: { account: "a", encryptionScopeState: { name: "s", disabled: true } } },
  },
  "Account.encryption_scopes": {
    without: { case: "putAccount", value: { account: { name: "a", encryptionScopes: [] } } },
    with: { case: "putAccount", value: { account: { name: "a", encryptionScopes: [scope] } } },
  },
  "BlobHeaders.content_type_cleared": {
    without: { case: "setBlobHeaders", value: { name, headers: { contentLanguage: "de" } } },
    with: { case: "setBlobHeaders", value: { name, headers: { contentLanguage: "de", contentTypeCleared: true } } },
  },
  "Account.geo_role": {
    without: { case: "putAccount", value: { account: { name: "a", geoRole: "" } } },
    with: { case: "putAccount", value: { account: { name: "a", geoRole: "role" } } },
  },
  "PutAccount.expected_geo_role": {
    without: { case: "putAccount", value: { account: { name: "a" } } },
    with: { case: "putAccount", value: { account: { name: "a" }, expectedGeoRole: "" } },
  },
  "PutAccount.expected_settings": {
    without: { case: "putAccount", value: { account: { name: "a" } } },
    with: { case: "putAccount", value: { account: { name: "a" }, expectedSettings: { keys: ["k"] } } },
  },
  "BlobPolicy.hierarchical": {
    without: { case: "putBlock", value: { name } },
    with: { case: "putBlock", value: { name } },
    policy: { hierarchical: true },
  },
  "ChangeAccount.geo_role": {
    without: { case: "changeAccount", value: { account: "a" } },
    with: { case: "changeAccount", value: { account: "a", geoRole: "role" } },
  },
  "ChangeAccount.expected_geo_role": {
    without: { case: "changeAccount", value: { account: "a" } },
    with: { case: "changeAccount", value: { account: "a", expectedGeoRole: "" } },
  },
};

/** An ExecuteRequest as a release before levels reads it: its descriptors, without the fields that came later. */
function olderRequest(): DescMessage {
  const files = [file_stamp_v1_partition_server.proto, ...file_stamp_v1_partition_server.dependencies.map(({ proto }) => proto)];
  for (const { dependencies } of file_stamp_v1_partition_server.dependencies) files.push(...dependencies.map(({ proto }) => proto));
  const later = new Set([...Object.keys(operationLevels), "ExecuteRequest.demanding", "ExecuteRequest.caller_level"]);
  const older = [...new Set(files)].map((file) => {
    const cut = clone(FileDescriptorProtoSchema, file);
    for (const message of cut.messageType) message.field = message.field.filter((field) => !later.has(`${message.name}.${field.name}`));
    return cut;
  });
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: ordered(older) }));
  return registry.getMessage("stamp.v1.ExecuteRequest") as DescMessage;
}

/** Files before those that import them. */
function ordered<F extends { readonly name: string; readonly dependency: readonly string[] }>(files: readonly F[]): F[] {
  const done: F[] = [];
  const add = (file: F): void => {
    if (done.some((one) => one.name === file.name)) return;
    for (const name of file.dependency) {
      const found = files.find((one) => one.name === name);
      if (found) add(found);
    }
    done.push(file);
  };
  for (const file of files) add(file);
  return done;
}

const sent = (fields: MessageInitShape<typeof ExecuteRequestSchema>): Uint8Array =>
  toBinary(ExecuteRequestSchema, create(ExecuteRequestSchema, { rangeId: "blob-1", rangeVersion: 3n, ...fields }));
const older = olderRequest();
const readByOlder = (bytes: Uint8Array) => fromBinary(older, bytes, { readUnknownFields: false }) as Message & { operation?: object };

test("levels: an operation with a field that an older server would drop reaches it as no operation, without the field as before", () => {
  assert.deepEqual(Object.keys(demanding), Object.keys(operationLevels));
  for (const [field, { without, with: needing, policy: asked }] of Object.entries(demanding)) {
    const plain = sent(executeFields({ kind: without }));
    assert.ok(readByOlder(plain).operation !== undefined, `${field}: without it, older servers are asked as before`);
    assert.ok(operationOf(fromBinary(ExecuteRequestSchema, plain))?.kind.case === without.case);

    // Before levels, the server read the operation without its field, and did that.
    assert.ok(readByOlder(sent({ operation: { kind: needing } })).operation !== undefined, field);

    const policy = { versioning: true, ...asked };
    const request = sent(executeFields({ kind: needing, policy }));
    assert.equal(readByOlder(request).operation, undefined, `${field}: an older server finds no operation`);
    const operation = operationOf(fromBinary(ExecuteRequestSchema, request));
    assert.ok(operation?.policy?.versioning);
    assert.deepEqual(operation, fromBinary(ExecuteRequestSchema, sent({ operation: { kind: needing, policy } })).operation);
  }
});

test("levels: a place deep inside of a copy, of a block and of pages is found", () => {
  const bodies: Kind[] = [
    { case: "putBlock", value: { name, body: { places: [encrypted] } } },
    { case: "putPages", value: { name, body: { places: [place, encrypted] } } },
    {
      case: "addToCopy",
      value: { name, parts: [{ blocks: [{ places: [place] }] }, { blocks: [{ places: [place] }, { places: [encrypted] }] }] },
    },
    { case: "startCopy", value: { name, parts: [{ blocks: [{ places: [encrypted] }] }] } },
  ];
  for (const kind of bodies) assert.equal(executeFields({ kind }).demanding?.level, 1, String(kind.case));
});

test("levels: a server refuses an operation of a later level, and an answer that its caller would misread", () => {
  const kind = { case: "getBlob", value: { name } } as const;
  const later = create(ExecuteRequestSchema, { demanding: { level: fieldLevel + 1, operation: { kind } } });
  assert.throws(
    () => operationOf(later),
    (error: unknown) => error instanceof FailureError && error.failure.reason === "newerFormat" && error.failure.applied === "no",
  );
  assert.equal(answerable(fieldLevel, fieldLevel).ok, true);
  const refusal = answerable(1, 0);
  assert.ok(!refusal.ok && refusal.failure.reason === "newerFormat" && refusal.failure.applied === "no");
});

/** All messages that a process sends to another. */
function everyMessage(): ReadonlySet<DescMessage> {
  const all = new Set<DescMessage>();
  for (const exported of Object.values(wire as Readonly<Record<string, unknown>>)) {
    const desc = exported as {
      readonly kind?: string;
      readonly methods?: readonly { readonly input: DescMessage; readonly output: DescMessage }[];
    };
    if (desc?.kind !== "service") continue;
    for (const { input, output } of desc.methods ?? []) {
      for (const message of [...messagesBelow(input), ...messagesBelow(output)]) all.add(message);
    }
  }
  for (const message of messagesBelow(wire.BusFramesSchema)) all.add(message);
  return all;
}

test("levels: of each field of each message it is decided what an older reader makes of it", () => {
  const list = new URL("../../../tests/golden/wire/fields.txt", import.meta.url);
  const names = readFileSync(list, "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.replace(/:.*/, ""));
  const known = new Set([...names, ...Object.keys(operationLevels)]);
  const fields = [...everyMessage()].filter(({ typeName }) => typeName.startsWith("stamp.v1.")).flatMap(({ fields }) => fields.map(nameOf));
  assert.ok(fields.length > 500, `${fields.length} fields`);
  const undecided = fields.filter((field) => !known.has(field)).sort();
  assert.deepEqual(
    undecided,
    [],
    "docs/design/mixed-releases.md: a field that changes what is asked needs a level, any other a reason in the list",
  );
  assert.deepEqual(
    [...known].filter((field) => !fields.includes(field)),
    [],
    "fields that are gone",
  );
  assert.deepEqual(names, [...new Set(names)].sort(), "each once, in order");
  assert.deepEqual(
    names.filter((field) => field in operationLevels),
    [],
    "a field has a level or a reason",
  );
});
