import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Client, credentials, Server, ServerCredentials, type ServiceDefinition } from "@grpc/grpc-js";
import { Availability } from "../availability.ts";
import { UsageError } from "../time.ts";
import { availabilityService } from "./availability.ts";
import { cooperativePolicy, registerCooperativePolicy } from "./policy.ts";

const asIs = (bytes: Buffer): Buffer => bytes;
const who: ServiceDefinition = {
  Who: {
    path: "/test.Who/Who",
    requestStream: false,
    responseStream: false,
    requestSerialize: asIs,
    requestDeserialize: asIs,
    responseSerialize: asIs,
    responseDeserialize: asIs,
  },
};

const stops: (() => void)[] = [];
after(() => {
  for (const stop of stops) stop();
});

async function node(name: string) {
  const availability = new Availability();
  const server = new Server();
  const { definition, implementation } = availabilityService(availability);
  server.addService(definition, implementation);
  server.addService(who, { Who: (_call: unknown, answer: (error: null, bytes: Buffer) => void) => answer(null, Buffer.from(name)) });
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound)));
  });
  stops.push(() => server.forceShutdown());
  return { name, availability, port, server };
}

test("options out of range are refused when the channel's options are made, and do not end the process later", () => {
  for (const options of [{ ordinal: 1.5 }, { ordinal: -1 }, { ordinal: 0, cacheMs: 0 }, { ordinal: 0, deadlineMs: 0 }]) {
    assert.throws(() => cooperativePolicy(options), UsageError);
  }
});

test("a grpc-js channel under the policy: its own place, a node that says no, one that is shut down, the way back", async () => {
  registerCooperativePolicy();
  assert.throws(() => registerCooperativePolicy(), /once in a process/);
  const nodes = (await Promise.all(["a", "b", "c"].map(node))).sort((x, y) => `${x.port}`.localeCompare(`${y.port}`));
  const [first, second, third] = nodes;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  const target = `ipv4:${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  const client = new Client(target, credentials.createInsecure(), cooperativePolicy({ ordinal: 1, cacheMs: 50, deadlineMs: 5_000 }));
  stops.push(() => client.close());
  let failed = 0;
  const call = (): Promise<string> =>
    new Promise((resolve, reject) => {
      const deadline = Date.now() + 20_000;
      client.makeUnaryRequest("/test.Who/Who", asIs, asIs, Buffer.alloc(0), { deadline }, (error, answer) => {
        if (error) failed++;
        return error ? reject(error) : resolve(String(answer));
      });
    });
  const until = async (name: string): Promise<void> => {
    for (let tries = 0; tries < 2_400; tries++) {
      if ((await call()) === name) return;
      await delay(25);
    }
    assert.fail(`calls never reached ${name}`);
  };
  assert.equal(await call(), second.name);
  second.availability.disable(600_000);
  await until(third.name);
  second.availability.enable();
  await until(second.name);
  assert.equal(failed, 0, "no call was lost while nodes said no and yes");
  second.server.forceShutdown();
  for (let tries = 0; ; tries++) {
    // A call that was on its way to the node that ended may fail; the next ones do not.
    const name = await call().catch(() => undefined);
    if (name === third.name || name === first.name) break;
    assert.ok(tries < 2_400);
    await delay(25);
  }
  third.availability.disable(600_000);
  first.availability.disable(600_000);
  await assert.rejects(async () => {
    for (let tries = 0; tries < 2_400; tries++) {
      await call();
      await delay(25);
    }
  }, /no node says that it is available/);
});
