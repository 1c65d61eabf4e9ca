/** Signals and availability of the front-ends of a real cluster, through the clients that programs use. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, credentials } from "@grpc/grpc-js";
import { GrpcSignalChannel } from "@stamp/coordination";
import { type DrillTarget, startOwn } from "@stamp/drills";
import { GrpcAvailability } from "@stamp/endpoints";
import { AvailabilityControl } from "@stamp/wire";

let stamp: DrillTarget;
let addresses: string[];
const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(stamp.connectionString)?.[1] ?? "";
const channels: GrpcSignalChannel[] = [];

before(async () => {
  stamp = await startOwn({ extentNodes: 3, streamManagers: 1, partitionManagers: 1, partitionServers: 1, frontEnds: 2 }, false);
  addresses = (await stamp.status()).processes.filter(({ role }) => role === "front-end").map(({ grpc }) => grpc);
  assert.equal(addresses.length, 2);
});
after(async () => {
  for (const channel of channels) channel.close();
  await stamp?.close();
});

function channelTo(given: readonly string[], accountKey = part("AccountKey"), onError: (error: unknown) => void = () => {}) {
  const channel = new GrpcSignalChannel({ addresses: given, account: part("AccountName"), accountKey, onError });
  channels.push(channel);
  return channel;
}

const subscribed = (channel: GrpcSignalChannel, topic: string, onSignal: () => void) =>
  new Promise<{ close(): void }>((resolve) => {
    const subscription = channel.subscribe(topic, onSignal, (connected) => {
      if (connected) resolve(subscription);
    });
  });

test("signals: four hundred listeners at two front-ends are reached by one publication; who left is not", async () => {
  let heard = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const onSignal = (): void => {
    if (++heard === 400) resolve();
  };
  const listening = await Promise.all(
    Array.from({ length: 4 }, () => channelTo(addresses)).flatMap((channel) =>
      Array.from({ length: 100 }, () => subscribed(channel, "start", onSignal)),
    ),
  );
  const publisher = channelTo(addresses);
  assert.equal(await publisher.publish("start"), 400);
  await promise;
  assert.equal(await publisher.publish("other"), 0);
  for (const one of listening) one.close();
  for (let tries = 0; (await publisher.publish("start")) > 0; tries++) {
    assert.ok(tries < 200);
    await new Promise((done) => setTimeout(done, 50));
  }
});

test("signals: with a wrong key, or none of the front-ends there, publishing is refused and listening tries again", async () => {
  const errors: unknown[] = [];
  const stranger = channelTo(addresses, Buffer.from("another key").toString("base64"), (error) => errors.push(error));
  await assert.rejects(stranger.publish("start"), /no front-end took the signal/);
  assert.match(String(errors[0]), /forged/);
  const nowhere = channelTo(["127.0.0.1:1"]);
  await assert.rejects(nowhere.publish("start"), AggregateError);
});

test("signals: the front-end of a listener is killed; the listener is subscribed again and hears the next signal", async () => {
  const [first = ""] = addresses;
  const channel = channelTo([first]);
  let heard = 0;
  const states: boolean[] = [];
  const subscription = channel.subscribe(
    "again",
    () => heard++,
    (connected) => states.push(connected),
  );
  const until = async (what: () => boolean): Promise<void> => {
    for (let tries = 0; !what(); tries++) {
      assert.ok(tries < 600, JSON.stringify({ heard, states }));
      await new Promise((done) => setTimeout(done, 50));
    }
  };
  await until(() => states.at(-1) === true);
  const victim = (await stamp.status()).processes.find(({ grpc }) => grpc === first);
  process.kill(victim?.pid ?? 0, "SIGKILL");
  await until(() => states.length >= 3 && states.at(-1) === true);
  assert.deepEqual(states.slice(0, 2), [true, false]);
  assert.equal(await channelTo([first]).publish("again"), 1);
  await until(() => heard === 1);
  subscription.close();
});

test("availability: a front-end says yes to strangers; its operator makes it say no for a time; it serves all the same", async () => {
  const [first = "", second = ""] = addresses;
  const asking = new GrpcAvailability();
  const ask = (address: string) => asking.ask(address, AbortSignal.timeout(20_000));
  assert.equal(await ask(first), true);
  const control = stamp.transport.client(first, AvailabilityControl);
  const told = await control.disableNode({ forMs: 600_000 }, { timeoutMs: 10_000 });
  assert.ok(told.ok);
  assert.deepEqual([await ask(first), await ask(second)], [false, true]);
  await control.disableNode({ forMs: 0 }, { timeoutMs: 10_000 });
  assert.equal(await ask(first), true);
  asking.close();
  // Without the secret of the stamp nobody disables a node.
  const stranger = new Client(first, credentials.createInsecure());
  const refused = await new Promise<number | undefined>((resolve) => {
    const asIs = (bytes: Buffer): Buffer => bytes;
    stranger.makeUnaryRequest("/stamp.v1.AvailabilityControl/DisableNode", asIs, asIs, Buffer.alloc(0), (error) => resolve(error?.code));
  });
  stranger.close();
  assert.equal(refused, 16);
});
