/** A running process follows the files of its secret: through a whole rotation, and through everything that can be wrong with them. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { inspect } from "node:util";
import { ok } from "@stamp/base";
import { servedPartly } from "@stamp/ports";
import { LockService } from "@stamp/wire";
import type { Credential } from "../grpc/credentials/credential.ts";
import { proofIdOfSecret } from "../grpc/credentials/secret-credential.ts";
// Loaded before the first connection, whose time is bounded: on a busy machine loading takes seconds.
import "../grpc/native/grpc-server.ts";
import { OrdinaryGrpc } from "../grpc/native/ordinary-grpc.ts";
import { GrpcTransport } from "../grpc/transport.ts";
import { ConfigError } from "../process/config.ts";
import { makeSecretFile, type SecretFiles, secretFilesBeside } from "./cluster-secret.ts";
import { addNextSecret, dropPreviousSecret, rotationState, useNextSecret } from "./secret-rotation.ts";
import { WatchedSecret } from "./watched-secret.ts";

function files(t: TestContext): SecretFiles {
  const folder = mkdtempSync(join(tmpdir(), "stamp-watched-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const made = secretFilesBeside(join(folder, "cluster-secret"));
  makeSecretFile(made.current);
  return made;
}

const secretIn = (path: string): string => readFileSync(path, "utf8").trim();
const call = { timeoutMs: 10_000 };

/** A process that serves and calls, with its own look at the files. */
async function process(t: TestContext, sources: SecretFiles) {
  const secret = new WatchedSecret({ clusterSecretFile: sources.current });
  let connections = 0;
  const counting = (): Credential => {
    const { credential } = secret;
    return {
      open: credential.open,
      accepts: credential.accepts,
      stillAccepts: (by) => credential.stillAccepts(by),
      dial: (port) => credential.dial(port),
      accept: (ports) => {
        connections++;
        return credential.accept(ports);
      },
      tokenFor: (port) => credential.tokenFor(port),
      admit: (token, ports) => credential.admit(token, ports),
    };
  };
  const transport = new GrpcTransport({ credential: counting });
  const names: string[] = [];
  let waiting = 0;
  let release: (() => void) | undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const listener = await transport.serve("127.0.0.1:0", [
    servedPartly(LockService, {
      getLease: async ({ name }) => {
        names.push(name);
        return ok({});
      },
      listLeases: async () => {
        waiting++;
        await held;
        return ok({});
      },
    }),
  ]);
  t.after(async () => {
    release?.();
    await transport.close();
    await listener.close(0);
  });
  return {
    secret,
    transport,
    address: listener.address,
    names,
    connections: () => connections,
    held: () => waiting,
    release: () => release?.(),
  };
}

async function until(condition: () => boolean): Promise<void> {
  for (let i = 0; i < 6_000 && !condition(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.ok(condition());
}

type Process = Awaited<ReturnType<typeof process>>;

/** Whether a call from one to the other goes through on a connection that is made now. */
async function reaches(from: Process, to: Process): Promise<string> {
  const transport = new GrpcTransport({ credential: () => from.secret.credential });
  const outcome = await transport.client(to.address, LockService).getLease({}, call);
  await transport.close();
  return outcome.ok ? "yes" : outcome.failure.code;
}

test("rotation: at every step, and with every mixture of processes that have looked at the files and have not, all calls go through", {
  timeout: 60_000,
}, async (t) => {
  const at = files(t);
  const first = secretIn(at.current);
  const early = await process(t, at);
  const late = await process(t, at);
  const standing = new GrpcTransport({ credential: () => late.secret.credential });
  t.after(() => standing.close());
  const both = async (step: string): Promise<void> => {
    for (const [from, to] of [
      [early, late],
      [late, early],
    ] as const)
      assert.equal(await reaches(from, to), "yes", step);
    const kept = await standing.client(early.address, LockService).getLease({}, call);
    assert.ok(kept.ok, `${step}: ${inspect(kept)}`);
  };
  const step = async (name: string, work: () => void): Promise<void> => {
    work();
    early.secret.look();
    await both(`${name}, one has looked`);
    late.secret.look();
    await both(`${name}, both have looked`);
  };
  await both("before");
  await step("add", () => addNextSecret(at));
  const second = secretIn(at.next);
  assert.deepEqual(early.secret.facts.ids, [first, second].map(proofIdOfSecret), "the next one is accepted, not used");
  addNextSecret(at);
  assert.equal(secretIn(at.next), second, "a second call of the step changes nothing");
  await step("use", () => useNextSecret(at));
  assert.deepEqual(early.secret.facts.ids, [second, first].map(proofIdOfSecret));
  assert.deepEqual(rotationState(at), { current: proofIdOfSecret(second), next: undefined, previous: proofIdOfSecret(first) });
  await step("drop", () => dropPreviousSecret(at));
  assert.deepEqual(early.secret.facts.ids, [proofIdOfSecret(second)]);
  assert.deepEqual(readdirSync(join(at.current, "..")), ["cluster-secret"], "nothing is left behind");
  assert.equal(statSync(at.current).mode & 0o777, 0o600);
});

test("rotation: after the last step the old secret opens nothing, on no connection; calls under way are answered", {
  timeout: 60_000,
}, async (t) => {
  const at = files(t);
  const server = await process(t, at);
  const thief = new WatchedSecret({ clusterSecret: secretIn(at.current) });
  const stolen = (["plain", "gRPC"] as const).map((link) => {
    const transport =
      link === "plain" ? new GrpcTransport({ credential: () => thief.credential }) : new OrdinaryGrpc(() => thief.credential);
    t.after(() => transport.close());
    return transport.client(server.address, LockService);
  });
  for (const client of stolen) assert.ok((await client.getLease({}, call)).ok);
  const underWay = stolen.map((client) => client.listLeases({}, call));
  await until(() => server.held() === 2);
  addNextSecret(at);
  useNextSecret(at);
  dropPreviousSecret(at);
  server.secret.look();
  for (let i = 0; i < 2; i++)
    for (const client of stolen) {
      const refused = await client.getLease({}, call);
      assert.ok(!refused.ok && refused.failure.code === "unauthenticated" && refused.failure.applied === "no", inspect(refused));
    }
  server.release();
  for (const outcome of underWay) assert.ok((await outcome).ok, "what began before is answered");
});

test("rotation: calls without a pause, some of them long, are moved over in their order when the server lets go of the old secret", {
  timeout: 60_000,
}, async (t) => {
  const at = files(t);
  const [caller, server] = [await process(t, at), await process(t, at)];
  const client = caller.transport.client(server.address, LockService);
  const long = client.listLeases({}, call);
  await until(() => server.held() === 1);
  addNextSecret(at);
  useNextSecret(at);
  dropPreviousSecret(at);
  const asked: Promise<unknown>[] = [];
  for (let i = 0; i < 200; i++) {
    asked.push(client.getLease({ name: String(i) }, call));
    if (i % 10 === 0) await new Promise(setImmediate);
    if (i === 100) for (const each of [caller, server]) each.secret.look();
  }
  for (const outcome of await Promise.all(asked)) assert.ok((outcome as { ok: boolean }).ok, inspect(outcome));
  assert.deepEqual(
    server.names,
    Array.from({ length: 200 }, (_, i) => String(i)),
  );
  server.release();
  assert.ok((await long).ok);
});

test("rotation: a caller whose secret was changed makes its next connection with the new one as soon as it has no call under way", {
  timeout: 60_000,
}, async (t) => {
  const at = files(t);
  const [caller, server] = [await process(t, at), await process(t, at)];
  const client = caller.transport.client(server.address, LockService);
  assert.ok((await client.getLease({}, call)).ok);
  addNextSecret(at);
  useNextSecret(at);
  for (const each of [caller, server]) each.secret.look();
  assert.equal(server.connections(), 1);
  assert.ok((await client.getLease({}, call)).ok);
  assert.equal(server.connections(), 2, "it moves over before the old secret is dropped");
  dropPreviousSecret(at);
  for (const each of [caller, server]) each.secret.look();
  const outcome = await client.getLease({}, call);
  assert.ok(outcome.ok, `it was not cut off: ${inspect(outcome)}`);
});

test("rotation: a token of gRPC that was used before the secrets changed stays used", (t) => {
  const at = files(t);
  const secret = new WatchedSecret({ clusterSecretFile: at.current });
  const token = secret.credential.tokenFor(7).text;
  assert.equal(secret.credential.admit(token, [7]).kind, "admitted");
  addNextSecret(at);
  secret.look();
  assert.equal(secret.facts.ids.length, 2);
  assert.equal(secret.credential.admit(token, [7]).kind, "refused");
});

test("files: what can't be used changes nothing and is told; when it is right again it is taken", (t) => {
  const at = files(t);
  const first = secretIn(at.current);
  const secret = new WatchedSecret({ clusterSecretFile: at.current });
  const renewed = "r".repeat(40);
  const wrongs: Readonly<Record<string, [() => void, RegExp]>> = {
    gone: [() => rmSync(at.current), /cluster-secret does not exist/],
    empty: [() => writeFileSync(at.current, ""), /at least 32 characters, this one 0/],
    short: [() => writeFileSync(at.current, "short\n"), /at least 32 characters, this one 5/],
    "a folder": [() => mkdirSync(at.current), /cluster-secret is a folder, not a file/],
    "a link to nothing": [() => symlinkSync("nowhere", at.current), /is a link to .*nowhere, which does not exist/],
    "a pipe": [() => void execFileSync("mkfifo", [at.current]), /is no regular file/],
    "a device": [() => symlinkSync("/dev/zero", at.current), /a link to \/dev\/zero\) is no regular file/],
    "too large": [() => writeFileSync(at.current, "x".repeat(5_000)), /has 5000 bytes/],
    "open to everybody": [
      () => {
        writeFileSync(at.current, renewed);
        chmodSync(at.current, 0o666);
      },
      /can be written by everybody on this machine, .*chmod 600/,
    ],
  };
  for (const [what, [make, words]] of Object.entries(wrongs)) {
    if (what !== "gone") rmSync(at.current, { force: true, recursive: true });
    make();
    secret.look();
    assert.match(secret.facts.problem, words, what);
    assert.deepEqual(secret.facts.ids, [proofIdOfSecret(first)], what);
    assert.throws(
      () => new WatchedSecret({ clusterSecretFile: at.current }),
      (error) => error instanceof ConfigError && words.test(error.message),
      `${what}: a process that starts`,
    );
  }
  chmodSync(at.current, 0o600);
  secret.look();
  assert.deepEqual([secret.facts.problem, secret.facts.ids], ["", [proofIdOfSecret(renewed)]], "replaced by hand");
});

test("files: a link to a secret is followed, also when it is moved to another file; a rotation of it is refused", (t) => {
  const at = files(t);
  for (const letter of ["a", "b"]) writeFileSync(`${at.current}-${letter}`, letter.repeat(40), { mode: 0o600 });
  rmSync(at.current);
  symlinkSync("cluster-secret-a", at.current);
  const secret = new WatchedSecret({ clusterSecretFile: at.current });
  assert.deepEqual(secret.facts.ids, [proofIdOfSecret("a".repeat(40))]);
  symlinkSync("cluster-secret-b", `${at.current}.link`);
  renameSync(`${at.current}.link`, at.current);
  secret.look();
  assert.deepEqual(secret.facts.ids, [proofIdOfSecret("b".repeat(40))]);
  assert.throws(() => rotationState(at), /is a link to .*cluster-secret-b: change the secret where it is kept/);
});

test("files: three different secrets are refused in words", (t) => {
  const at = files(t);
  const secret = new WatchedSecret({ clusterSecretFile: at.current });
  writeFileSync(at.next, "n".repeat(40), { mode: 0o600 });
  writeFileSync(at.previous, "p".repeat(40), { mode: 0o600 });
  secret.look();
  assert.match(secret.facts.problem, /hold three secrets, and a process accepts two/);
  assert.equal(secret.facts.ids.length, 1);
});
