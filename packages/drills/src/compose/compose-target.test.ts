import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { after, test } from "node:test";
import { ok } from "@stamp/base";
import { reservePorts } from "@stamp/cluster";
import { served } from "@stamp/ports";
import { credentialOf, GrpcTransport } from "@stamp/ports-node";
import { LockService } from "@stamp/wire";
import { publishedPort, RelayedTransport, settingsOf } from "./compose-target.ts";

const secret = "0123456789abcdef0123456789abcdef";

test("drill on compose, settings of a drill, become the environment of each container of their role", () => {
  const processes = ["partition-manager-1", "partition-manager-2", "front-end-1"].map((name) => ({ name, role: name.slice(0, -2) }));
  const settings = settingsOf({ "partition-manager": { balance: false, splitBytes: 1_048_576 } }, processes);
  const environment = { STAMP_BALANCE: "false", STAMP_SPLIT_BYTES: "1048576" };
  assert.deepEqual(settings, { "partition-manager-1": environment, "partition-manager-2": environment });
});

test("drill on compose, published port, is that of this machine; a port that Docker did not publish is an error", () => {
  const told = "20000/tcp -> 127.0.0.1:49153\n20001/tcp -> 127.0.0.1:49154\n";
  assert.equal(publishedPort(told, 20_001), 49_154);
  assert.throws(() => publishedPort(told, 2_000), /did not publish port 2000/);
});

test("drill on compose, call through the relay, proves itself for the port of the process and not for the one that is dialed", async () => {
  const server = new GrpcTransport({ credential: () => credentialOf({ clusterSecret: secret }) });
  const listener = await server.serve("127.0.0.1:0", [served(LockService, { getLease: async () => ok({ address: "found" }) } as never)]);
  after(() => listener.close(0));
  const { portBase: relayPort, release } = await reservePorts();
  after(release);
  const relay = spawn(process.execPath, [join(import.meta.dirname, "relay.ts"), `${relayPort}=${listener.address}`], {
    stdio: ["pipe", "inherit", "inherit"],
  });
  after(() => relay.kill());

  const relayed = new RelayedTransport(new Map([[listener.address, relayPort]]), credentialOf({ clusterSecret: secret }));
  after(() => relayed.close());
  const getLease = async () => relayed.client(listener.address, LockService).getLease({ name: "any" }, { timeoutMs: 5_000 });
  let answer = await getLease();
  // The relay starts.
  for (let tries = 0; !answer.ok && answer.failure.reason === "connectFailed" && tries < 1_200; tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    answer = await getLease();
  }
  assert.ok(answer.ok, answer.ok ? "" : answer.failure.message);
  assert.equal(answer.value.address, "found");

  const direct = new GrpcTransport({ credential: () => credentialOf({ clusterSecret: secret }) });
  after(() => direct.close());
  const refused = await direct.client(`127.0.0.1:${relayPort}`, LockService).getLease({ name: "any" }, { timeoutMs: 5_000 });
  assert.ok(!refused.ok && refused.failure.message.includes("reached at another port"), refused.ok ? "answered" : refused.failure.message);

  relay.stdin?.end();
  assert.deepEqual(await once(relay, "close"), [0, null], "it ends with the drill");
});
