/**
 * Walks the table of callers with certificates of the stamp: every role asks a server for every method, and for everything that the requests of one
 * method can do. A method or an operation without a row in the table of callers, or without a request below, fails the test.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { create, type DescMessage, type DescService, type MessageInitShape } from "@bufbuild/protobuf";
import { type Outcome, ok } from "@stamp/base";
import { type CallOptions, type ServedService, servedPartly } from "@stamp/ports";
import { GrpcTransport, OrdinaryGrpc, type PeerFiles, readPeerTls, SecretCredential } from "@stamp/ports-node";
import * as wire from "@stamp/wire";
import { type Caller, ChangeAccountSchema, callers, callersOf, type OperationSchema, rowsOf } from "@stamp/wire";
import { authorityIn, issue, put } from "./cluster-certs-command.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-callers-"));
const wholeSecret = "the secret of this stamp, 32 characters and more";
const patient = { connectTimeoutMs: 30_000, proveTimeoutMs: 30_000 };
const call = { timeoutMs: 30_000 };
after(() => rmSync(folder, { recursive: true, force: true }));

let authority: Awaited<ReturnType<typeof authorityIn>>;
before(async () => {
  authority = await authorityIn(folder, true);
});

const named = (role: Caller): string => `${role}-1`;

async function tlsOf(role: Caller): Promise<ReturnType<typeof readPeerTls>> {
  const at = (name: string): string => join(folder, `${role}-${name}`);
  const files: PeerFiles = { cert: at("cert.pem"), key: at("key.pem"), ca: at("ca.pem") };
  put(files.ca, authority.certificate, 0o644);
  await issue(files, authority, { stamp: "south", role, name: named(role) }, 1);
  return readPeerTls(files);
}

const services = (Object.values(wire) as unknown[]).filter(
  (each): each is DescService => (each as { kind?: unknown } | null)?.kind === "service",
);

interface Asked {
  readonly service: DescService;
  readonly method: string;
  readonly name: string;
  /** Row of the request in the table; undefined: all requests of the method do the same. */
  readonly row: string | undefined;
  readonly request: object;
}

type Make = (row: string, role: Caller) => object;

/** A value for each field of a change, so that it counts as set. */
function change(field: string): MessageInitShape<typeof ChangeAccountSchema> {
  if (field === "firstDelegationSecret") return { delegationSecret: Uint8Array.of(1), expectedDelegationSecret: new Uint8Array(0) };
  const desc = ChangeAccountSchema.field[field as keyof (typeof ChangeAccountSchema)["field"]];
  assert.ok(desc, field);
  if (desc.fieldKind === "list") return { [field]: ["a"] };
  if (desc.fieldKind === "map") return { [field]: { blob: "{}" } };
  if (desc.message) return { [field]: {} };
  return { [field]: field.toLowerCase().endsWith("role") ? "{}" : Uint8Array.of(1) };
}

function operation(row: string): MessageInitShape<typeof OperationSchema> {
  const [kind = "", inner] = row.split(".");
  const value = inner === undefined ? {} : kind === "changeAccount" ? change(inner) : { kind: { case: inner, value: {} } };
  return { kind: { case: kind, value } } as MessageInitShape<typeof OperationSchema>;
}

const leaseOf = (row: string, role: Caller): string => (row === "ps/" ? `ps/${named(role)}` : row);
const streamOf = (row: string): string => (row === "others" ? "/by-hand" : `${row}a`);
const lease: Make = (row, role) => ({ name: leaseOf(row, role), holder: named(role) });
const stream: Make = (row) => ({ name: streamOf(row) });

/** Requests that do one thing, for each method whose requests do different things. */
const requests: Readonly<Record<string, Make>> = {
  "PartitionServer/Execute": (row) => ({ operation: operation(row) }),
  "LockService/AcquireLease": lease,
  "LockService/RenewLease": lease,
  "LockService/ReleaseLease": lease,
  "LockService/RefuseRenewals": lease,
  "MetadataStore/Transact": (row) =>
    row.startsWith("lease ") ? { fence: { leaseName: row.slice(6) } } : { writes: [{ key: row.endsWith("/") ? `${row}a` : row }] },
  "MetadataStore/ListKeys": (row) => ({ prefix: row === "others" ? "" : row }),
  "StreamManager/CreateStream": stream,
  "StreamManager/OpenStream": stream,
  "StreamManager/SealAndAllocate": stream,
  "StreamManager/TruncateStream": stream,
  "StreamManager/DeleteStream": stream,
  "StreamManager/AllocateAhead": stream,
  "StreamManager/OpenStreams": (row) => ({ names: [streamOf(row)] }),
  "StreamManager/ConcatenateStreams": (row) => ({ source: streamOf(row), target: streamOf(row) }),
  "StreamManager/MultiModify": (row) => ({ edits: [{ name: streamOf(row) }] }),
  "StreamManager/ReportNode": (_row, role) => ({ nodeId: named(role) }),
  "Accounts/GetShipping": (row) => ({ copyLineage: row === "copyLineage" ? 1n : 0n }),
  "Consensus/Deliver": (_row, role) => ({ from: named(role) }),
  "FeatureLevels/Announce": (row, role) => ({ role: row, name: named(role) }),
};

const unary = services.flatMap((service) =>
  service.methods.filter(({ methodKind }) => methodKind === "unary").map((method) => ({ service, method })),
);

function asked(role: Caller): Asked[] {
  return unary.flatMap(({ service, method }): Asked[] => {
    const name = `${service.typeName}/${method.name}`;
    const rows = rowsOf(name);
    if (rows === undefined) return [{ service, method: method.localName, name, row: undefined, request: {} }];
    const make = requests[name.replace("stamp.v1.", "")];
    assert.ok(make, `${name} has rows in request-callers.ts and no request in this test`);
    return Object.keys(rows.rows).map((row) => {
      const request = make(row, role);
      const done = rows.doneBy(create(method.input as DescMessage, request as never) as never);
      const expected = row === "changeAccount.firstDelegationSecret" ? [row, "changeAccount.expectedDelegationSecret"] : [row];
      assert.deepEqual([...done].sort(), expected.sort(), `${name}: a request that does ${row}`);
      return { service, method: method.localName, name, row, request };
    });
  });
}

const given = (role: Caller, name: string, row: string | undefined): boolean => {
  const by = row === undefined ? callersOf(name) : rowsOf(name)?.rows[row];
  return by === "everybody" || by?.includes(role) === true;
};

async function served(t: TestContext, role: Caller): Promise<string> {
  const all = services.map((service): ServedService => {
    const handlers = service.methods
      .filter(({ methodKind }) => methodKind === "unary")
      .map(({ localName }) => [localName, async () => ok({})]);
    return servedPartly(service, Object.fromEntries(handlers));
  });
  const tls = await tlsOf(role);
  const credential = new SecretCredential([wholeSecret], undefined, undefined, undefined, role);
  const listener = await new GrpcTransport({ credential: () => credential, tls: () => tls, limits: patient }).serve("127.0.0.1:0", all);
  t.after(() => listener.close(0));
  return listener.address;
}

async function transportAs(t: TestContext, role: Caller, link: "plain" | "gRPC" = "plain"): Promise<GrpcTransport | OrdinaryGrpc> {
  const tls = await tlsOf(role);
  const credential = new SecretCredential([wholeSecret], undefined, undefined, undefined, role);
  const transport =
    link === "plain"
      ? new GrpcTransport({ credential: () => credential, tls: () => tls, limits: patient })
      : new OrdinaryGrpc(() => credential, tls);
  t.after(() => transport.close());
  return transport;
}

type AnyClient = Record<string, (request: object, options: CallOptions) => Promise<Outcome<object>>>;
const ask = (
  transport: GrpcTransport | OrdinaryGrpc,
  address: string,
  { service, method, request }: Pick<Asked, "service" | "method" | "request">,
) => (transport.client(address, service) as unknown as AnyClient)[method]?.(request, call) as Promise<Outcome<object>>;
const said = (outcome: Outcome<object>): string => (outcome.ok ? "ok" : `${outcome.failure.code} ${outcome.failure.applied}`);

for (const link of ["plain", "gRPC"] as const)
  test(`callers, by certificate (${link}): every role gets what the table gives it, operation by operation, and nothing else`, {
    timeout: 300_000,
  }, async (t) => {
    // The one role that every other one may call.
    const address = await served(t, "front-end");
    for (const role of callers) {
      const transport = await transportAs(t, role, link);
      const all = asked(role);
      assert.ok(all.length > 200, `${all.length} requests`);
      const answers = await Promise.all(all.map((each) => ask(transport, address, each)));
      const wrong = all.flatMap(({ name, row }, at) => {
        const expected = given(role, name, row) ? "ok" : "permissionDenied no";
        const answer = said(answers[at] as Outcome<object>);
        return answer === expected ? [] : [`${name} ${row ?? ""}: ${answer}, not ${expected}`];
      });
      assert.deepEqual(wrong, [], role);
    }
  });

test("callers, by certificate: a front-end manages no account", { timeout: 120_000 }, async (t) => {
  const address = await served(t, "partition-server");
  const transport = await transportAs(t, "front-end");
  const execute = (operation: object): Promise<Outcome<object>> =>
    ask(transport, address, { service: wire.PartitionServer, method: "execute", request: operation });
  const change = { account: "shop", serviceProperties: { blob: "{}" }, expectedServiceProperties: { blob: "" }, expectedGeoRole: "{}" };
  const first = { account: "shop", delegationSecret: Uint8Array.of(1), expectedDelegationSecret: new Uint8Array(0) };
  const asked = [
    [{ case: "getAccount", value: { account: "shop" } }, "ok"],
    [{ case: "changeAccount", value: change }, "ok"],
    [{ case: "changeAccount", value: first }, "ok"],
    [{ case: "changeAccount", value: { ...change, keys: ["a2V5"] } }, "permissionDenied no"],
    [{ case: "changeAccount", value: { account: "shop", delegationSecret: Uint8Array.of(1) } }, "permissionDenied no"],
    [{ case: "changeAccount", value: { ...first, expectedDelegationSecret: Uint8Array.of(2) } }, "permissionDenied no"],
    [{ case: "listAccounts", value: {} }, "permissionDenied no"],
    [{ case: "putAccount", value: { account: { name: "mine", keys: ["a2V5"] } } }, "permissionDenied no"],
  ] as const;
  for (const [kind, expected] of asked) {
    assert.equal(
      said(await execute({ operation: { kind } })),
      expected,
      JSON.stringify(kind, (_name, value) => value ?? null),
    );
    assert.equal(said(await execute({ demanding: { level: 1, operation: { kind } } })), expected);
    const hidden = { operation: { kind: { case: "getContainer", value: {} } }, demanding: { level: 1, operation: { kind } } };
    assert.equal(said(await execute(hidden)), expected, "beside an operation that is allowed");
  }
});

test("callers, by certificate: what has no row is for nobody, also for a role that may do everything else", {
  timeout: 120_000,
}, async (t) => {
  const address = await served(t, "lock-service");
  const { LockService, MetadataStore, FeatureLevels, StreamManager } = wire;
  const cases = [
    ["partition-manager", LockService, "acquireLease", { name: "another-lease", holder: named("partition-manager") }],
    ["partition-manager", LockService, "refuseRenewals", { name: "stream-manager" }],
    ["stream-manager", MetadataStore, "transact", { writes: [{ key: "another/record" }] }],
    ["stream-manager", MetadataStore, "transact", { conditions: [{ key: "another/record" }] }],
    ["stream-manager", MetadataStore, "transact", { writes: [{ key: "sm/a" }], fence: { leaseName: "another-lease" } }],
    ["front-end", FeatureLevels, "announce", { role: "another-role", name: named("front-end") }],
    ["operator", StreamManager, "reportNode", { nodeId: named("operator") }],
  ] as const;
  for (const [role, service, method, request] of cases) {
    const transport = await transportAs(t, role);
    assert.equal(said(await ask(transport, address, { service, method, request })), "permissionDenied no", `${role} ${method}`);
  }
});

test("callers, by certificate: a process speaks for itself only", { timeout: 120_000 }, async (t) => {
  const address = await served(t, "lock-service");
  const { LockService, StreamManager, FeatureLevels } = wire;
  const cases = [
    ["partition-server", LockService, "acquireLease", (name: string) => ({ name: `ps/${name}`, holder: name })],
    ["partition-server", LockService, "acquireLease", (name: string) => ({ name: `ps/${name}`, holder: "partition-server-1" })],
    ["partition-server", LockService, "acquireLease", (name: string) => ({ name: "ps/partition-server-1", holder: name })],
    ["partition-server", LockService, "renewLease", (name: string) => ({ name: `ps/${name}` })],
    ["partition-server", LockService, "releaseLease", (name: string) => ({ name: `ps/${name}` })],
    ["stream-manager", LockService, "acquireLease", (name: string) => ({ name: "stream-manager", holder: name })],
    ["partition-manager", LockService, "acquireLease", (name: string) => ({ name: "partition-manager", holder: name })],
    ["extent-node", StreamManager, "reportNode", (name: string) => ({ nodeId: name })],
    ["front-end", FeatureLevels, "announce", (name: string) => ({ role: "front-end", name })],
    ["extent-node", FeatureLevels, "announce", (name: string) => ({ role: "extent-node", name })],
  ] as const;
  for (const [role, service, method, request] of cases) {
    const transport = await transportAs(t, role);
    assert.equal(said(await ask(transport, address, { service, method, request: request(`${role}-1`) })), "ok", `${role} ${method}`);
    const other = await ask(transport, address, { service, method, request: request(`${role}-2`) });
    assert.equal(said(other), "permissionDenied no", `${role} ${method}`);
  }
});
