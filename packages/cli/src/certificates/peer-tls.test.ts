/** Mutual TLS between processes: who gets in, who does not, and how certificates are renewed. Here, because this package makes certificates. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectPlain, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connect as connectTls } from "node:tls";
import { inspect } from "node:util";
import { ok } from "@stamp/base";
import { servedPartly } from "@stamp/ports";
import {
  GrpcTransport,
  OrdinaryGrpc,
  PeerCertificates,
  type PeerFiles,
  type PeerName,
  readPeerTls,
  SecretCredential,
} from "@stamp/ports-node";
import { type Caller, ExtentNode, FrontEnd, LockService } from "@stamp/wire";
import { makeAuthority, makePeerCertificate, makeServerCertificate, type PemPair } from "./certificates.ts";

const secret = new SecretCredential(["the secret of this stamp, 32 characters and more"]);
const call = { timeoutMs: 60_000 };
/** For machines with much to do. */
const patient = { connectTimeoutMs: 30_000, proveTimeoutMs: 30_000 };
const dayMs = 86_400_000;
const authority = await makeAuthority("cluster", Date.now());
const stranger = await makeAuthority("cluster", Date.now());

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "stamp-peers-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

function write(at: PeerFiles, pair: PemPair, ca: string): void {
  for (const [path, text] of [
    [at.key, pair.key],
    [at.cert, pair.certificate],
    [at.ca, ca],
  ] as const) {
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  }
}

interface Issue {
  readonly stamp?: string;
  readonly by?: PemPair;
  readonly trusts?: string;
  readonly days?: number;
  readonly nowMs?: number;
}

async function files(t: TestContext, role: Caller, name: string, issue: Issue = {}): Promise<PeerFiles> {
  const dir = folder(t);
  const at = { cert: join(dir, "cert.pem"), key: join(dir, "key.pem"), ca: join(dir, "ca.pem") };
  const { stamp = "one", by = authority, trusts = authority.certificate, days = 30, nowMs = Date.now() } = issue;
  write(at, await makePeerCertificate(by, { stamp, role, name }, nowMs, days), trusts);
  return at;
}

async function server(t: TestContext, at: PeerFiles, limits = {}) {
  const certificates = new PeerCertificates(at);
  const transport = new GrpcTransport({ credential: () => secret, tls: () => certificates.tls, limits: { ...patient, ...limits } });
  const payload = Buffer.alloc(300_000, 7);
  const listener = await transport.serve("127.0.0.1:0", [
    servedPartly(ExtentNode, {
      append: async (request) => ok({ offsetsBytes: [BigInt(request.payload.reduce((sum, each) => sum + each.length, 0))] }),
      read: async () => ok({ payload }),
      sealExtent: async () => ok({}),
    }),
    servedPartly(LockService, { getLease: async () => ok({}) }),
    servedPartly(FrontEnd, {
      getBlob: async function* () {
        yield { payload: new Uint8Array(3) };
      },
    }),
  ]);
  t.after(() => listener.close(0));
  return { certificates, address: listener.address, port: Number(listener.address.split(":")[1]) };
}

function client(t: TestContext, at: PeerFiles | undefined, link: "plain" | "gRPC" = "plain", credential = secret) {
  const certificates = at === undefined ? undefined : new PeerCertificates(at);
  const tls = certificates === undefined ? {} : { tls: () => certificates.tls };
  const transport =
    link === "plain"
      ? new GrpcTransport({ credential: () => credential, ...tls, limits: patient })
      : new OrdinaryGrpc(() => credential, certificates?.tls);
  t.after(() => transport.close());
  return { transport, certificates };
}

test("mutual TLS: calls with and without payload, on plain connections and over gRPC, and streams, between processes with certificates", {
  timeout: 120_000,
}, async (t) => {
  const { address } = await server(t, await files(t, "extent-node", "extent-node-1"));
  for (const link of ["plain", "gRPC"] as const) {
    const { transport } = client(t, await files(t, "partition-server", "partition-server-1"), link);
    const node = transport.client(address, ExtentNode);
    const sent = [Buffer.alloc(200_000, 1), Buffer.alloc(5, 2)];
    const appended = await node.append({ payload: sent }, call);
    assert.ok(appended.ok && appended.value.offsetsBytes[0] === 200_005n, inspect(appended));
    for (let i = 0; i < 5; i++) {
      const read = await node.read({}, call);
      assert.ok(read.ok && Buffer.alloc(300_000, 7).equals(read.value.payload), link);
    }
  }
  const { transport } = client(t, await files(t, "operator", "operator"));
  let bytes = 0;
  for await (const { payload } of transport.client(address, FrontEnd).getBlob({}, call)) bytes += payload.length;
  assert.equal(bytes, 3);
});

test("mutual TLS: the role is the certificate's, whatever the secret's token claims, on the bus and over gRPC", {
  timeout: 120_000,
}, async (t) => {
  const { address } = await server(t, await files(t, "extent-node", "extent-node-1"));
  const liar = new SecretCredential(
    ["the secret of this stamp, 32 characters and more"],
    undefined,
    undefined,
    undefined,
    "stream-manager",
  );
  for (const link of ["plain", "gRPC"] as const) {
    const { transport } = client(t, await files(t, "front-end", "front-end-1"), link, liar);
    const sealed = await transport.client(address, ExtentNode).sealExtent({}, call);
    assert.ok(!sealed.ok && sealed.failure.code === "permissionDenied" && sealed.failure.applied === "no", inspect(sealed));
    assert.match(sealed.failure.message, /role front-end/);
    assert.ok((await transport.client(address, ExtentNode).read({}, call)).ok);
  }
  const { transport } = client(t, await files(t, "front-end", "front-end-1"), "plain", liar);
  const stream = transport.client(address, FrontEnd).getBlob({}, call)[Symbol.asyncIterator]();
  await assert.rejects(stream.next(), /front-end/);
  const { transport: manager } = client(t, await files(t, "stream-manager", "stream-manager-1"));
  assert.ok((await manager.client(address, ExtentNode).sealExtent({}, call)).ok);
});

test("mutual TLS: without a certificate, with one of another authority, stamp or time, and to such a server, nobody gets through", {
  timeout: 120_000,
}, async (t) => {
  const { address } = await server(t, await files(t, "extent-node", "extent-node-1"));
  const ended = await files(t, "front-end", "fe");
  const past = Date.now() - 40 * dayMs;
  write(ended, await makePeerCertificate(authority, { stamp: "one", role: "front-end", name: "fe" }, past, 30), authority.certificate);
  assert.throws(() => readPeerTls(ended), /ended at/);
  const endedTls = readPeerTls(ended, past);
  const refused = async (transport: GrpcTransport | OrdinaryGrpc, at: string, what: string): Promise<string> => {
    t.after(() => transport.close());
    const outcome = await transport.client(at, LockService).getLease({}, call);
    assert.ok(!outcome.ok && outcome.failure.applied === "no", `${what}: ${inspect(outcome)}`);
    return outcome.failure.message;
  };
  for (const link of ["plain", "gRPC"] as const) {
    await refused(client(t, undefined, link).transport, address, "no certificate");
    const foreign = await files(t, "front-end", "fe", { by: stranger, trusts: stranger.certificate });
    await refused(client(t, foreign, link).transport, address, "another authority, which it trusts alone");
    const mixed = { ...(await files(t, "front-end", "fe", { by: stranger, trusts: authority.certificate + stranger.certificate })) };
    await refused(client(t, mixed, link).transport, address, "another authority");
    await refused(client(t, await files(t, "front-end", "fe", { stamp: "two" }), link).transport, address, "another stamp");
  }
  await refused(new GrpcTransport({ credential: () => secret, tls: () => endedTls, limits: patient }), address, "ended");
  await refused(new OrdinaryGrpc(() => secret, endedTls), address, "ended");
  const good = await files(t, "front-end", "fe");
  const operator = await server(t, await files(t, "operator", "operator"));
  assert.match(await refused(client(t, good).transport, operator.address, "an operator as server"), /serves nothing/);
  const other = await server(t, await files(t, "lock-service", "lock-service-1", { stamp: "two" }));
  assert.match(await refused(client(t, good).transport, other.address, "a server of another stamp"), /of the stamp two/);
  const open = await new GrpcTransport({ credential: () => secret }).serve("127.0.0.1:0", [
    servedPartly(LockService, { getLease: async () => ok({}) }),
  ]);
  t.after(() => open.close(0));
  await refused(client(t, good).transport, open.address, "a server without TLS");
});

test("mutual TLS: a session is not resumed: every connection shows its certificate again", { timeout: 60_000 }, async (t) => {
  const { port } = await server(t, await files(t, "extent-node", "extent-node-1"));
  const { context } = readPeerTls(await files(t, "front-end", "fe"));
  const sessions: Buffer[] = [];
  const dial = (session?: Buffer): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port, secureContext: context, checkServerIdentity: () => undefined };
      const socket = connectTls({ ...options, ...(session === undefined ? {} : { session }) });
      socket.on("session", (each: Buffer) => sessions.push(each)).on("error", reject);
      // The server sends what it has of sessions right behind its handshake.
      socket.once("secureConnect", () =>
        setTimeout(() => {
          resolve(socket.isSessionReused());
          socket.destroy();
        }, 200),
      );
    });
  await dial();
  for (const session of [...sessions]) {
    assert.equal(await dial(session), false);
  }
});

test("mutual TLS: a certificate must be enough for its secret, and the secret for its certificate", { timeout: 60_000 }, async (t) => {
  const { address } = await server(t, await files(t, "extent-node", "extent-node-1"));
  const wrong = new SecretCredential(["the secret of another stamp, as long as it is"]);
  const { transport } = client(t, await files(t, "front-end", "fe"), "plain", wrong);
  const outcome = await transport.client(address, LockService).getLease({}, call);
  assert.ok(!outcome.ok && outcome.failure.code === "unauthenticated", inspect(outcome));
});

test("mutual TLS: a renewed certificate, and a new authority, are taken without a restart; connections move over, no call fails", {
  timeout: 120_000,
}, async (t) => {
  const [atServer, atClient] = [await files(t, "extent-node", "en"), await files(t, "front-end", "fe")];
  const { certificates, address } = await server(t, atServer);
  const { transport, certificates: own } = client(t, atClient);
  const reaches = async (step: string): Promise<void> => {
    const fresh = client(t, atClient).transport;
    for (const each of [transport, fresh]) {
      const outcome = await each.client(address, LockService).getLease({}, call);
      assert.ok(outcome.ok, `${step}: ${inspect(outcome)}`);
    }
  };
  await reaches("before");
  const next = await makeAuthority("next cluster", Date.now());
  const both = authority.certificate + next.certificate;
  const en: PeerName = { stamp: "one", role: "extent-node", name: "en" };
  const fe: PeerName = { stamp: "one", role: "front-end", name: "fe" };
  const steps: readonly [string, PeerFiles, PemPair, PeerName, string][] = [
    ["the server trusts both", atServer, authority, en, both],
    ["the caller trusts both", atClient, authority, fe, both],
    ["the server has the new one", atServer, next, en, both],
    ["the caller has the new one", atClient, next, fe, both],
    ["the server trusts the new one alone", atServer, next, en, next.certificate],
    ["the caller trusts the new one alone", atClient, next, fe, next.certificate],
  ];
  for (const [step, at, by, name, ca] of steps) {
    const before = [certificates.tls, own?.tls];
    write(at, await makePeerCertificate(by, name, Date.now(), 30), ca);
    certificates.look();
    own?.look();
    assert.notDeepEqual(
      [certificates.tls, own?.tls].map((each) => each === before[0] || each === before[1]),
      [true, true],
      step,
    );
    await reaches(step);
  }
});

test("certificate files: what can't be used is refused in words at the start, and changes nothing in a process that runs", async (t) => {
  const at = await files(t, "front-end", "fe");
  const running = new PeerCertificates(at);
  const before = running.tls;
  const good = await makePeerCertificate(authority, { stamp: "one", role: "front-end", name: "fe" }, Date.now(), 30);
  const rest = await makeServerCertificate(authority, ["localhost"], Date.now(), 30);
  const wrongs: Readonly<Record<string, [() => void, RegExp]>> = {
    "another key": [() => write(at, { certificate: good.certificate, key: rest.key }, authority.certificate), /is not the one of/],
    "no name of a process": [() => write(at, rest, authority.certificate), /has 0 names of a process/],
    "another authority": [() => write(at, good, stranger.certificate), /signed by no authority in/],
    "no authority": [() => write(at, good, ""), /holds no certificate of an authority/],
    noise: [() => write(at, { certificate: "noise", key: good.key }, authority.certificate), /cert\.pem: /],
    "a key for everybody": [
      () => {
        write(at, good, authority.certificate);
        chmodSync(at.key, 0o644);
      },
      /can be read by other users.*chmod 600/,
    ],
    gone: [() => rmSync(at.cert), /there is no such file/],
  };
  for (const [what, [make, words]] of Object.entries(wrongs)) {
    make();
    running.look();
    assert.match(running.problem, words, what);
    assert.equal(running.tls, before, what);
    assert.throws(() => readPeerTls(at), words, what);
  }
  // Kubernetes mounts a secret like this for the group of a pod.
  write(at, good, authority.certificate);
  chmodSync(at.key, 0o440);
  if (process.getuid?.() === 0) readPeerTls(at);
  else assert.throws(() => readPeerTls(at), /can be read by other users/);
  chmodSync(at.key, 0o460);
  assert.throws(() => readPeerTls(at), /can be read by other users/, "a group that may write it");
  write(at, await makePeerCertificate(authority, { stamp: "one", role: "extent-node", name: "fe" }, Date.now(), 30), authority.certificate);
  running.look();
  assert.match(running.problem, /this process is front-end of one/);
  write(at, good, authority.certificate);
  running.look();
  assert.equal(running.problem, "");
  assert.notEqual(running.tls, before);
});

test("mutual TLS: strangers that say nothing, half a handshake, noise or no certificate are dropped in time, are few, and keep nobody out", {
  timeout: 120_000,
}, async (t) => {
  const { address, port } = await server(t, await files(t, "extent-node", "en"), { unprovenMax: 8, proveTimeoutMs: 1_000 });
  const open = new Set<Socket>();
  const says = [
    () => {},
    (socket: Socket) => void socket.write(Buffer.from([0x16, 3, 1, 0])),
    (socket: Socket) => void socket.write("SBUS and noise, noise, noise, noise"),
    (socket: Socket) => void socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  ];
  for (let i = 0; i < 40; i++) {
    const socket =
      i % 5 === 4
        ? connectTls({ host: "127.0.0.1", port, rejectUnauthorized: false })
        : connectPlain({ host: "127.0.0.1", port }, () => says[i % 5]?.(socket));
    open.add(socket);
    t.after(() => socket.destroy());
    socket
      .on("error", () => {})
      .on("close", () => open.delete(socket))
      .resume();
  }
  const { transport } = client(t, await files(t, "front-end", "fe"));
  const outcome = await transport.client(address, LockService).getLease({}, call);
  assert.ok(outcome.ok, inspect(outcome));
  for (let i = 0; i < 6_000 && open.size > 0; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(open.size, 0, "all are dropped");
});
