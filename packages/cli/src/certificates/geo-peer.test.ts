/** Certificate of another stamp (role `geo-peer`): made by a command, taken by front-ends at the geo door, and refused at each internal port. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { ok } from "@stamp/base";
import { servedPartly } from "@stamp/ports";
import { GrpcTransport, geoPeerSecretOf, OrdinaryGrpc, type PeerFiles, readPeerTls, SecretCredential } from "@stamp/ports-node";
import { Accounts, type Caller, callers, ExtentNode, FrontEnd, GeoDoor, LockService } from "@stamp/wire";
import { authorityIn, issue, put } from "./cluster-certs-command.ts";

const main = join(import.meta.dirname, "../main.ts");
const folder = mkdtempSync(join(tmpdir(), "stamp-geo-peer-"));
const data = join(folder, "data");
const wholeSecret = "the secret of this stamp, 32 characters and more";
const secret = new SecretCredential([wholeSecret]);
const patient = { connectTimeoutMs: 30_000, proveTimeoutMs: 30_000 };
const call = { timeoutMs: 30_000 };

interface Ran {
  readonly code: number;
  readonly said: string;
}

const certs = (...args: readonly string[]): Promise<Ran> =>
  new Promise((resolve) => {
    const child = execFile(process.execPath, [main, "certs", "cluster", ...args, "--data", data], (_error, out, err) =>
      resolve({ code: child.exitCode ?? -1, said: out + err }),
    );
  });

const filesIn = (dir: string, name: string): PeerFiles => ({
  cert: join(dir, `${name}.pem`),
  key: join(dir, `${name}-key.pem`),
  ca: join(dir, "ca.pem"),
});
const peers = join(folder, "for-north");

before(async () => {
  const made = await certs("init", "--stamp", "south");
  assert.equal(made.code, 0, made.said);
  const issued = await certs("issue", "--role", "geo-peer", "--name", "north-1", "--dir", peers);
  assert.equal(issued.code, 0, issued.said);
  assert.match(issued.said, /stamp:\/\/south\/geo-peer\/north-1/);
});
after(() => rmSync(folder, { recursive: true, force: true }));

test("geo peer, its certificate: it goes into a folder that is given away, named for its use and not for the stamp", async () => {
  assert.deepEqual(readdirSync(peers).sort(), ["ca.pem", "geo-peer-key.pem", "geo-peer.pem"]);
  assert.deepEqual(readPeerTls(filesIn(peers, "geo-peer")).own, { stamp: "south", role: "geo-peer", name: "north-1" });
  const here = await certs("issue", "--role", "geo-peer", "--name", "north-1");
  assert.equal(here.code, 2, here.said);
  assert.match(here.said, /needs --dir/);
});

async function served(t: TestContext, role: Caller): Promise<{ address: string; seen: string[] }> {
  const own = mkdtempSync(join(folder, `${role}-`));
  const files = filesIn(own, role);
  const authority = await authorityIn(join(data, "cluster-certs"), false);
  put(files.ca, authority.certificate, 0o644);
  await issue(files, authority, { stamp: "south", role, name: `${role}-1` }, 1);
  const tls = readPeerTls(files);
  const seen: string[] = [];
  const note = async (_request: object, { caller, callerName }: { readonly caller?: string; readonly callerName?: string }) => {
    seen.push(`${caller} ${callerName}`);
    return ok({});
  };
  const services = [
    servedPartly(GeoDoor, { pinData: note as never }),
    servedPartly(LockService, { getLease: note as never }),
    servedPartly(Accounts, { getForCopy: note as never }),
    servedPartly(ExtentNode, { read: note as never }),
    servedPartly(FrontEnd, { deleteBlob: note as never }),
  ];
  const credential = new SecretCredential([wholeSecret], undefined, undefined, undefined, role);
  const listener = await new GrpcTransport({ credential: () => credential, tls: () => tls, limits: patient }).serve(
    "127.0.0.1:0",
    services,
  );
  t.after(() => listener.close(0));
  return { address: listener.address, seen };
}

function peer(
  t: TestContext,
  link: "plain" | "gRPC",
  files = filesIn(peers, "geo-peer"),
  credential = secret,
): GrpcTransport | OrdinaryGrpc {
  const tls = readPeerTls(files);
  const transport =
    link === "plain"
      ? new GrpcTransport({ credential: () => credential, tls: () => tls, limits: patient })
      : new OrdinaryGrpc(() => credential, tls);
  t.after(() => transport.close());
  return transport;
}

test("geo peer, its certificate: a front-end serves it the geo door, tells it by its stamp's name, and refuses the rest", {
  timeout: 120_000,
}, async (t) => {
  const { address, seen } = await served(t, "front-end");
  for (const link of ["plain", "gRPC"] as const) {
    seen.length = 0;
    const transport = peer(t, link);
    const taken = await transport.client(address, GeoDoor).pinData({}, call);
    assert.ok(taken.ok, inspect(taken));
    for (const outcome of [
      await transport.client(address, LockService).getLease({}, call),
      await transport.client(address, Accounts).getForCopy({}, call),
      await transport.client(address, ExtentNode).read({}, call),
    ])
      assert.ok(!outcome.ok && outcome.failure.code === "permissionDenied" && outcome.failure.applied === "no", inspect(outcome));
    assert.deepEqual(seen, ["geo-peer north-1"], link);
  }
});

test("geo peer, an old certificate: one of the role partition-server opens nothing with the derived secret, and the door with the whole one", {
  timeout: 120_000,
}, async (t) => {
  const { address, seen } = await served(t, "front-end");
  const dir = mkdtempSync(join(folder, "old-"));
  const issued = await certs("issue", "--role", "partition-server", "--name", "partition-server", "--dir", dir);
  assert.equal(issued.code, 0, issued.said);
  const old = filesIn(dir, "partition-server");
  const given = geoPeerSecretOf(wholeSecret, "north-1");
  for (const link of ["plain", "gRPC"] as const) {
    for (const role of ["geo-peer", "partition-server"] as const) {
      seen.length = 0;
      const derived = peer(t, link, old, new SecretCredential([given], undefined, undefined, undefined, role));
      for (const outcome of [
        await derived.client(address, GeoDoor).pinData({}, call),
        await derived.client(address, LockService).getLease({}, call),
        await derived.client(address, FrontEnd).deleteBlob({}, call),
      ])
        assert.ok(!outcome.ok, `${link}, ${role}`);
      assert.deepEqual(seen, [], `${link}, ${role}`);
      // The release before uses both. Its front-ends take them below feature level 4 (geo-door.ts).
      const whole = peer(t, link, old, new SecretCredential([wholeSecret], undefined, undefined, undefined, role));
      const taken = await whole.client(address, GeoDoor).pinData({}, call);
      assert.ok(taken.ok, `${link}, ${role}: ${inspect(taken)}`);
      assert.match(seen.join(), /^partition-server /);
    }
    seen.length = 0;
    const both = peer(t, link, undefined, new SecretCredential([given], undefined, undefined, undefined, "geo-peer"));
    const taken = await both.client(address, GeoDoor).pinData({}, call);
    assert.ok(taken.ok, inspect(taken));
    assert.deepEqual(seen, ["geo-peer north-1"], link);
    const another = new SecretCredential([geoPeerSecretOf(wholeSecret, "east-1")], undefined, undefined, undefined, "geo-peer");
    const mixed = await peer(t, link, undefined, another).client(address, GeoDoor).pinData({}, call);
    assert.ok(mixed.ok, inspect(mixed));
    assert.deepEqual(seen, ["geo-peer north-1", "geo-peer east-1+north-1"], `${link}: a name that no stamp has`);
  }
});

test("geo peer, its certificate: every other process of the stamp ends the connection", { timeout: 240_000 }, async (t) => {
  for (const role of callers.filter((each) => !["front-end", "operator", "geo-peer", "location-peer"].includes(each))) {
    const { address, seen } = await served(t, role);
    for (const link of ["plain", "gRPC"] as const) {
      const transport = peer(t, link);
      for (const outcome of [
        await transport.client(address, GeoDoor).pinData({}, call),
        await transport.client(address, LockService).getLease({}, call),
        await transport.client(address, ExtentNode).read({}, call),
      ])
        assert.ok(!outcome.ok && outcome.failure.applied === "no", `${role}, ${link}: ${inspect(outcome)}`);
    }
    assert.deepEqual(seen, [], role);
  }
});

test("geo peer, its certificate: a server with it is no process of the stamp", { timeout: 60_000 }, async (t) => {
  const tls = readPeerTls(filesIn(peers, "geo-peer"));
  const thief = new GrpcTransport({ credential: () => secret, tls: () => tls, limits: patient });
  const listener = await thief.serve("127.0.0.1:0", [servedPartly(LockService, { getLease: async () => ok({}) })]);
  t.after(() => listener.close(0));
  const own = readPeerTls(filesIn(join(data, "cluster-certs"), "operator"));
  const transport = new GrpcTransport({ credential: () => secret, tls: () => own, limits: patient });
  t.after(() => transport.close());
  const outcome = await transport.client(listener.address, LockService).getLease({}, call);
  assert.ok(!outcome.ok, inspect(outcome));
  assert.match(outcome.failure.message, /serves nothing/);
});
