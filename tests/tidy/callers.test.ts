/** Every method of every service between processes has a row in the table of callers (packages/wire/src/callers.ts). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as wire from "@stamp/wire";
import { callers, callersOf, methodsFor, rowsOf } from "@stamp/wire";

interface Service {
  readonly kind: "service";
  readonly typeName: string;
  readonly methods: readonly { readonly name: string; readonly methodKind: string }[];
}
const services = (Object.values(wire) as unknown[]).filter(
  (each): each is Service => (each as { kind?: unknown } | null)?.kind === "service",
);
const methods = services.flatMap(({ typeName, methods }) => methods.map(({ name }) => `${typeName}/${name}`));

test("callers: every method of every service has its callers in packages/wire/src/callers.ts", () => {
  assert.ok(methods.length > 80, `${methods.length} methods`);
  assert.deepEqual(
    methods.filter((name) => callersOf(name) === undefined || callersOf(name)?.length === 0),
    [],
  );
});

test("callers: every kind of operation, and every field of a change of an account, has a row of its own", () => {
  const rows = rowsOf("stamp.v1.PartitionServer/Execute")?.rows ?? {};
  const kindsIn = ({ oneofs }: { readonly oneofs: readonly { readonly fields: readonly { readonly localName: string }[] }[] }): string[] =>
    oneofs.flatMap(({ fields }) => fields.map(({ localName }) => localName));
  const fields = wire.ChangeAccountSchema.fields.map(({ localName }) => localName).filter((name) => name !== "account");
  const parted: Record<string, string[]> = {
    table: kindsIn(wire.TableOperationSchema),
    queue: kindsIn(wire.QueueOperationSchema),
    // The first secret is one more thing that the same field does.
    changeAccount: [...fields, "firstDelegationSecret"],
  };
  const expected = kindsIn(wire.OperationSchema).flatMap((kind) => parted[kind]?.map((inner) => `${kind}.${inner}`) ?? [kind]);
  assert.ok(expected.length > 70, `${expected.length} kinds`);
  assert.deepEqual(Object.keys(rows).sort(), expected.sort());
});

test("callers: what changes or destroys is for few", () => {
  const only = (method: string): string => String(callersOf(`stamp.v1.${method}`));
  assert.equal(only("ExtentNode/Append"), "partition-server,partition-manager", "owners of streams append, and nobody else");
  assert.equal(only("ExtentNode/SealExtent"), "stream-manager");
  assert.equal(only("ExtentNode/DeleteExtent"), "stream-manager");
  assert.equal(only("ExtentNode/Replicate"), "extent-node");
  // A location service has a store of its own, with records below location/.
  assert.equal(only("MetadataStore/Transact"), "stream-manager,partition-manager,location-service");
  assert.equal(only("Accounts/GetForCopy"), "location-peer,location-service", "answers with every secret of an account");
  assert.equal(only("StreamManager/SealAcceptingLoss"), "operator");
  assert.equal(only("PartitionServer/LoadPartition"), "partition-manager");
  assert.equal(only("Accounts/RotateKey"), "operator");
  assert.ok(!methodsFor("extent-node").has("stamp.v1.PartitionServer/Execute"), "an extent node reads no account keys");
  const ofLocations = [...methodsFor("location-service")].map((name) => name.replace("stamp.v1.", "")).sort();
  assert.deepEqual(ofLocations, [
    ...[
      "Accounts/CopySettings",
      "Accounts/Create",
      "Accounts/ForgetDiverged",
      "Accounts/GetCopy",
      "Accounts/GetForCopy",
      "Accounts/GetRole",
      "Accounts/GetSettingsInForce",
      "Accounts/GetShipping",
      "Accounts/List",
      "Accounts/ListDiverged",
      "Accounts/ListQueues",
      "Accounts/ListRemovals",
      "Accounts/Obey",
      "Accounts/VouchForCopy",
    ],
    ...["Availability/IsAvailable", "FeatureLevels/Announce"],
    ...["LockService/AcquireLease", "LockService/GetLease", "LockService/ReleaseLease", "LockService/RenewLease"],
    ...["MetadataStore/GetStamp", "MetadataStore/ListKeys", "MetadataStore/Transact"],
    ...["Signals/Publish", "Signals/Subscribe", "StreamManager/ListNodes"],
  ]);
  for (const caller of callers) assert.ok(methodsFor(caller).size < methods.length, caller);
});

test("callers: a method whose requests do different things is unary, as the server checks only the one request of a unary call", () => {
  const parted = services.flatMap(({ typeName, methods }) =>
    methods.flatMap(({ name, methodKind }) => (rowsOf(`${typeName}/${name}`) === undefined ? [] : [[name, methodKind]])),
  );
  assert.ok(parted.length >= 10, `${parted.length} methods`);
  assert.deepEqual(
    parted.filter(([, kind]) => kind !== "unary"),
    [],
  );
});

test("callers: who may do what is as tests/golden/wire/callers.txt says; a change of the table changes the list, for a person to see", () => {
  const lines = methods.flatMap((name) => {
    const rows = rowsOf(name)?.rows;
    const given: readonly (readonly [string, unknown])[] = rows === undefined ? [["", callersOf(name)]] : Object.entries(rows);
    return given.map(([row, by]) => `${name.replace("stamp.v1.", "")}${row === "" ? "" : ` ${row}`}: ${[by].flat().toSorted().join(" ")}`);
  });
  const list = readFileSync(new URL("../golden/wire/callers.txt", import.meta.url), "utf8");
  const golden = list.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  assert.deepEqual(lines.toSorted(), golden);
});
