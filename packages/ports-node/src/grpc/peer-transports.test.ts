import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Outcome, ok } from "@stamp/base";
import { servedPartly, silentLogger } from "@stamp/ports";
import { GeoDoor } from "@stamp/wire";
import { NodeClock } from "../clock.ts";
import { geoPeerSecretOf, sharedPeerSecretOf } from "./credentials/derived-secrets.ts";
import { SecretCredential } from "./credentials/secret-credential.ts";
import { peerTransports } from "./peer-transports.ts";
import { GrpcTransport } from "./transport.ts";

test("transports to other stamps: files that can't be used refuse the calls to that stamp with the reason, and are read again", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-peers-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const to = peerTransports({ clock: new NodeClock(), logger: silentLogger }, folder, "");
  const why = (stamp: string): string => {
    const transport = to(stamp);
    return transport.ok ? "ok" : `${transport.failure.code}: ${transport.failure.message}`;
  };
  assert.match(why("south"), /^failedPrecondition: the secret of stamp south is not there/);
  assert.match(why("../south"), /^invalidArgument/);
  writeFileSync(join(folder, "south"), `${Buffer.alloc(32, 1).toString("base64")}\n`, { mode: 0o600 });
  mkdirSync(join(folder, "south-certs"));
  // The first command of the guide leaves this, until the second one has run.
  writeFileSync(join(folder, "south-certs", "ca.pem"), "no certificate");
  assert.match(why("south"), /^failedPrecondition: certificates for stamp south: .*geo-peer\.pem/);
  rmSync(join(folder, "south-certs"), { recursive: true });
  const first = to("south");
  assert.ok(first.ok);
  await first.value.close();
});

test("transports to other stamps: keys are sent to nobody by a secret that all peers of a stamp share, and to its door by one of the pair", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-peers-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const [whole, other] = [1, 2].map((byte) => Buffer.alloc(32, byte).toString("base64"));
  assert.ok(whole !== undefined && other !== undefined);
  const door = async (secret: string) => {
    const keys: string[] = [];
    const service = servedPartly(GeoDoor, {
      pushSettings: async ({ settings }) => {
        keys.push(...(settings?.keys ?? []));
        return ok({});
      },
    });
    const credential = new SecretCredential([secret], undefined, undefined, undefined, "front-end");
    const listener = await new GrpcTransport({ credential: () => credential }).serve("127.0.0.1:0", [service]);
    t.after(() => listener.close(0));
    return { address: listener.address, keys };
  };
  const [real, forged] = [await door(whole), await door(other)];
  const clock = new NodeClock();
  const push = async (stamp: string, secret: string, ownName: string, address: string, forKeys = true): Promise<string> => {
    writeFileSync(join(folder, stamp), `${secret}\n`, { mode: 0o600 });
    const transport = peerTransports({ clock, logger: silentLogger }, folder, ownName)(stamp, forKeys);
    if (!transport.ok) return `${transport.failure.reason}: ${transport.failure.message}`;
    t.after(() => transport.value.close());
    const pushed: Outcome<unknown> = await transport.value
      .client(address, GeoDoor)
      .pushSettings({ settings: { keys: [stamp] } }, { timeoutMs: 20_000 });
    return pushed.ok ? "ok" : pushed.failure.code;
  };
  const shared = sharedPeerSecretOf(whole);
  assert.match(await push("shared", shared, "", real.address), /^unauthorized: no keys .*\.\/stamp secret geo-peer --for /);
  assert.match(await push("shared", shared, "north-1", real.address), /^unauthorized: /, "the own name makes no secret of a pair of it");
  assert.match(await push("whole", whole, "", real.address), /^unauthorized: /);
  assert.equal(await push("rest", shared, "", real.address, false), "ok", "what has no keys goes on");
  assert.deepEqual(real.keys, ["rest"]);
  const pair = geoPeerSecretOf(whole, "north-1");
  assert.equal(await push("pair", pair, "", real.address), "ok");
  assert.equal(await push("made", whole, "north-1", real.address), "ok");
  assert.deepEqual(real.keys, ["rest", "pair", "made"]);
  // Nothing is sent to a door that has not proven the same secret.
  assert.equal(await push("pair", pair, "", forged.address), "unauthenticated");
  assert.deepEqual(forged.keys, []);
});
