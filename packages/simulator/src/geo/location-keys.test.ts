/**
 * A location service over two stamps of feature level 4 sees no key of an account: none is in what it asks or is answered, and none in its store.
 * Keys of accounts that are made through it go to the caller by way of it, once; here the stamp makes the account.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { allRules, type Outcome, unwrap } from "@stamp/base";
import { LocationServiceRole, locationServiceSchema } from "@stamp/location-service";
import { LockServiceRole, lockServiceSchema, metadataStoreName } from "@stamp/lock-service";
import { sleep, type Transport } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { LocationService } from "@stamp/wire";
import { BlobsAt, bytesOf } from "./blob-client.ts";
import { account, OneStamp, until } from "./two-stamps.ts";

const lock = "lock-service-21";
const service = "location-service-21";
const options = { timeoutMs: 10_000 };
const keyOf = (byte: number): string => Buffer.alloc(64, byte).toString("base64");

const textOf = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    typeof part === "bigint" ? String(part) : part instanceof Uint8Array ? Buffer.from(part).toString("latin1") : part,
  );

/** A transport whose clients note every request and answer. */
const tapped = (transport: Transport, seen: string[]): Transport =>
  new Proxy(transport, {
    get: (target, name) => {
      const held = Reflect.get(target, name) as unknown;
      if (name !== "client") return typeof held === "function" ? held.bind(target) : held;
      return (...at: Parameters<Transport["client"]>) =>
        new Proxy(target.client(...at) as object, {
          get: (client, method) => {
            const run = Reflect.get(client, method) as unknown;
            if (typeof run !== "function") return run;
            return async (request: unknown, ...rest: unknown[]) => {
              const answer: Outcome<unknown> = await run.call(client, request, ...rest);
              seen.push(`${String(method)} ${textOf(request)} ${textOf(answer)}`);
              return answer;
            };
          },
        });
    },
  });

test("location service: it sees no key of an account that it protects, fails over, moves back and gives up, and stores none", async () => {
  const sim = new Simulation({ seed: 7, rules: allRules });
  await sim.run(async () => {
    const [a, b] = [new OneStamp(sim, "a", ":1"), new OneStamp(sim, "b", ":1")] as const;
    const seen: string[] = [];
    sim.addProcess(lock, (world) => new LockServiceRole(world, lockServiceSchema.parse({ name: lock, listen: lock, init: true })));
    const times = { askEveryMs: 2_000, accountsEveryMs: 5_000, drainMaxMs: 20_000 };
    const config = locationServiceSchema.parse({ name: service, listen: service, lockService: lock, ...times });
    sim.addProcess(service, (world) => {
      const transport = tapped(world.transport, seen);
      return new LocationServiceRole({ ...world, transport }, config, () => transport);
    });
    const leads = async (): Promise<boolean> => sim.role(service)?.status.state === "leader";
    while (!a.ready || !b.ready || !(await leads())) await sleep(a.world.clock, 200);
    const location = sim.world("operator").transport.client(service, LocationService);
    const planted = [keyOf(201), keyOf(202)];
    unwrap(await a.accounts.create({ account, keys: planted }, options));
    const blobs = await BlobsAt.of(sim, a);
    await blobs.done("PUT", "/con?restype=container");
    await blobs.done("PUT", "/con/one", { "x-ms-blob-type": "BlockBlob" }, bytesOf("one", 100));
    for (const at of [a, b])
      unwrap(await location.addStamp({ name: at.name, location: at.name, lockService: at.lockService, doors: [at.door] }, options));
    const known = async () => (await location.getAccount({ account }, options)).ok;
    await until(a, "the account is known", known);
    const idleAt = (stamp: string, seeded = true) =>
      until(a, `primary at ${stamp}`, async () => {
        const held = await location.getAccount({ account }, options);
        return held.ok && held.value.kind === "" && held.value.stamp === stamp && (!seeded || held.value.seeded);
      });
    unwrap(await location.protectAccount({ account, stamp: "b", location: "" }, options));
    await idleAt("a");
    const rotate = async (at: OneStamp, byte: number): Promise<void> => {
      planted.push(keyOf(byte));
      unwrap(await at.accounts.rotateKey({ account, keyNumber: 1, newKey: keyOf(byte) }, options));
    };
    const over = async (to: OneStamp): Promise<void> => {
      await until(a, "a failover begins", async () => (await location.failOverAccount({ account, stamp: to.name }, options)).ok);
      await idleAt(to.name);
      assert.equal(unwrap(await to.accounts.get({ account }, options)).keys[0], planted.at(-1), "the copy has the last keys");
      const promoted = await BlobsAt.of(sim, to);
      await promoted.done("GET", "/con/one");
    };
    await rotate(a, 203);
    await over(b);
    await rotate(b, 204);
    await over(a);
    await sleep(a.world.clock, 20_000);
    unwrap(await location.unprotectAccount({ account }, options));
    await idleAt("a", false);
    const inAnswers = seen.filter((text) => planted.some((key) => text.includes(key)) || /"keys":\["/.test(text));
    assert.deepEqual(inAnswers.slice(0, 3), []);
    const methods = new Set(seen.map((text) => text.split(" ")[0]));
    for (const method of ["obey", "getSettingsInForce", "vouchForCopy", "transact"]) assert.ok(methods.has(method), method);
    for (const method of ["get", "getForCopy", "copySettings"]) assert.ok(!methods.has(method), method);
    const stored = [...sim.keyValue(lock).store(metadataStoreName).values.values()]
      .map((value) => Buffer.from(value).toString("latin1"))
      .join();
    assert.ok(stored.includes(account), "the record of the account");
    for (const key of planted) assert.ok(!stored.includes(key));
  });
});
