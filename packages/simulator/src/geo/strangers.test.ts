/**
 * The most that another stamp can do with the geo door to accounts that it has nothing to do with: nothing. It runs code of its own, so it sends
 * what rows, places and numbers it likes.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { allRules, featureLevel, type Outcome, type RuleName, rulesWithout, unwrap, utf8 } from "@stamp/base";
import { accountKeys, blobSchema, encodeKey, encodeRow, type Place } from "@stamp/objects";
import { sleep } from "@stamp/ports";
import { Simulation } from "@stamp/virtual-time";
import { GeoDoor } from "@stamp/wire";
import { HttpClient } from "../workloads/clients/http-client.ts";
import { BlobsAt, bytesOf } from "./blob-client.ts";
import { account, beginPair, until, untilShipped } from "./two-stamps.ts";

const secret = "VICTIM-SECRET-DATA ";
const put = { "x-ms-blob-type": "BlockBlob" };

/** Two stamps with a copy, and the client of an account that only stamp b has. */
async function begin(sim: Simulation) {
  const { a, b } = await beginPair(sim, async (a) => {
    await (await BlobsAt.of(sim, a)).done("PUT", "/con?restype=container");
  });
  await until(a, "the copy is complete", async () => (await b.role()) === "secondary");
  await untilShipped(a);
  const key = bytesOf("the key of the victim", 64);
  const keys = [Buffer.from(key).toString("base64")];
  await b.until("an account", () => b.accounts.create({ account: "victim", keys }, { timeoutMs: 3_000 }));
  const door = { account: "victim", accountKey: key, frontEnd: b.door };
  const http = new HttpClient(sim, sim.world("victim-client"), "victim-client", door, "blob", 20_000);
  const done = async (method: string, path: string, headers: Readonly<Record<string, string>> = {}, body?: Uint8Array) => {
    for (let attempt = 0; ; attempt++) {
      const received = await http.request(method, path, { "x-ms-version": "2023-11-03", ...headers }, body);
      if (received !== undefined && received.status < 300) return received;
      assert.ok(attempt < 100, `${method} ${path}: ${received?.status}`);
      await sleep(b.world.clock, 200);
    }
  };
  await done("PUT", "/private?restype=container");
  return { a, b, victim: { done }, geo: a.world.transport.client(b.door, GeoDoor) };
}

const { low } = accountKeys(account);
/** A PartitionName of the account that nobody uses, and the key of a row in it. */
const nameOf = (name: string): Uint8Array => encodeKey([[account], [1, "con", 7, name]]);
const keyIn = (name: Uint8Array): Uint8Array => Uint8Array.from([...name, ...encodeKey([[3, 1, 0]])]);
const options = { timeoutMs: 5_000 };
/** Highest ticket that is taken: `shippedTicketMax` of @stamp/range-partition. */
const shippedTicketMax = 2 ** 52 + 2 ** 51;
const knownLevel = featureLevel;

for (const without of [[], ["geoPlacesVouched"]] as readonly RuleName[][]) {
  const told =
    without.length === 0 ? "reads no bytes of other accounts" : "reads bytes of other accounts without the rule geoPlacesVouched";
  test(`strangers: another stamp that ships rows with places of its own choice ${told}`, async () => {
    const sim = new Simulation({ seed: 4, rules: rulesWithout(...without) });
    await sim.run(async () => {
      const { b, victim, geo } = await begin(sim);
      await victim.done("PUT", "/private/secret", put, utf8(secret.repeat(2_000)));
      const name = nameOf("evil");
      const write = async (of: Uint8Array) => {
        const { places, mac } = unwrap(await geo.writeData({ account, epoch: 1n, name: of, payload: utf8("x".repeat(20_500)) }, options));
        const { extentId, offsetBytes, lengthBytes } = places[0] as NonNullable<(typeof places)[0]>;
        return { extentId, offsetBytes, lengthBytes, mac };
      };
      type Handle = Awaited<ReturnType<typeof write>>;
      const [own, others] = [await write(name), await write(nameOf("other"))];
      const before: Handle = { ...own, offsetBytes: own.offsetBytes - 20_000n };
      let sequence = 1_000_000n;
      const refused = async (handles: readonly Handle[], { extentId, offsetBytes, lengthBytes }: Handle): Promise<string> => {
        const place: Place = { extentId: Number(extentId), offsetBytes: Number(offsetBytes), lengthBytes };
        const rows = [{ key: keyIn(name), value: encodeRow(blobSchema, { places: [place] }) }];
        const shipment = { epoch: 1n, paired: 2n, name, commits: [{ sequence: ++sequence, lastTicket: 1n, rows }], handles: [...handles] };
        const shipped = await geo.ship({ account, epoch: 1n, table: "Blob", knownLevel, shipment }, options);
        const highKey = Uint8Array.from([...name.slice(0, -1), 0x01]);
        const part = { epoch: 1n, paired: 2n, sequence: ++sequence, lastTicket: 1n, lowKey: name, highKey, rows, handles: [...handles] };
        const seeded = await geo.seed({ account, epoch: 1n, table: "Blob", knownLevel, part }, options);
        return [shipped, seeded].map((one) => (one.ok ? "applied" : one.failure.reason)).join();
      };
      const bad = without.length === 0 ? "badPlace,badPlace" : "applied,applied";
      assert.equal(await refused([], before), bad, "bytes of a neighbour");
      assert.equal(await refused([own], before), bad, "with the handle of its own bytes");
      assert.equal(await refused([before], before), bad, "with a handle that was moved");
      assert.equal(await refused([others], others), bad, "bytes of another blob");
      assert.equal(await refused([own], own), "applied,applied");
      if (without.length > 0) return;
      // A row keeps the bytes that it has. A handle is good for nothing when the server that gave it has ended.
      for (const server of [1, 2]) sim.crash(b.server(server));
      await until(b, "the stamp serves again", async () => b.ready && !(await refused([], before)).includes("notReady"));
      await until(b, "own bytes are taken", async () => (await refused([], own)) === "applied,applied");
      assert.equal(await refused([others], others), "badPlace,badPlace");
      assert.ok(new TextDecoder().decode((await victim.done("GET", "/private/secret")).body).startsWith(secret));
    });
  });
}

test("strangers: what another stamp ships outside of a PartitionName of its account, or can't be read, is refused", async () => {
  const sim = new Simulation({ seed: 4, rules: allRules });
  await sim.run(async () => {
    const { geo } = await begin(sim);
    const name = nameOf("evil");
    const value = encodeRow(blobSchema, { places: [] });
    const head = Uint8Array.from([...name, ...encodeKey([[0]])]);
    const reasonOf = async (of: Uint8Array, key: Uint8Array, bytes: Uint8Array = value): Promise<string> => {
      const shipment = { epoch: 1n, paired: 2n, name: of, commits: [{ sequence: 1n, lastTicket: 1n, rows: [{ key, value: bytes }] }] };
      const shipped = await geo.ship({ account, epoch: 1n, table: "Blob", knownLevel, shipment }, options);
      return shipped.ok ? "applied" : shipped.failure.reason;
    };
    const victim = encodeKey([["victim"], [1, "private", 1, "secret"]]);
    assert.equal(await reasonOf(victim, keyIn(victim)), "badRequest", "another account");
    assert.equal(await reasonOf(name, keyIn(victim)), "badRequest", "a key of another account");
    assert.equal(await reasonOf(low, keyIn(name)), "badRequest", "all keys of the account as one PartitionName");
    assert.equal(await reasonOf(name.slice(0, -1), keyIn(name)), "badRequest");
    assert.equal(await reasonOf(name, keyIn(nameOf("evil2"))), "badRequest", "a key of another PartitionName");
    assert.equal(await reasonOf(name, head, Uint8Array.from([1, 9])), "badRequest", "a head that would stop the collector of the range");
    assert.equal(await reasonOf(name, keyIn(name)), "applied");
  });
});

test("strangers: honest rows arrive though the servers of the copy restart between their bytes and them", async () => {
  const sim = new Simulation({ seed: 4, rules: allRules });
  await sim.run(async () => {
    const { a, b } = await begin(sim);
    const [here, there] = [await BlobsAt.of(sim, a), await BlobsAt.of(sim, b, { secondary: true })];
    const block = (id: string): string => encodeURIComponent(Buffer.from(id).toString("base64"));
    const restart = async (): Promise<void> => {
      await untilShipped(a);
      for (const server of [1, 2]) sim.crash(b.server(server));
      await until(b, "the stamp is ready", async () => b.ready);
    };
    const stage = (id: string) => here.done("PUT", `/con/blob?comp=block&blockid=${block(id)}`, {}, bytesOf(id, 30_000));
    const list = (...ids: string[]) =>
      utf8(`<BlockList>${ids.map((id) => `<Latest>${decodeURIComponent(block(id))}</Latest>`).join("")}</BlockList>`);
    for (const id of ["aa", "bb"]) await stage(id);
    await restart();
    await here.done("PUT", "/con/blob?comp=blocklist", {}, list("aa", "bb"));
    await restart();
    // The snapshot refers to the bytes of a row that stays: no handle is left for them.
    await here.done("PUT", "/con/blob?comp=snapshot");
    await stage("cc");
    await here.done("PUT", "/con/blob?comp=blocklist", {}, list("bb", "cc"));
    await untilShipped(a);
    assert.equal(await there.list("con"), await here.list("con"));
    assert.equal(await there.seen("/con/blob"), await here.seen("/con/blob"));
  });
});

const isNumber = ({ scalar }: DescField): boolean => scalar !== undefined && [ScalarType.UINT64, ScalarType.UINT32].includes(scalar);

/** Paths of all numbers of a message. */
const pathsOf = (desc: DescMessage): string[] =>
  desc.fields.flatMap((field) => {
    if (field.message !== undefined) return pathsOf(field.message).map((path) => `${field.localName}.${path}`);
    return isNumber(field) ? [field.localName] : [];
  });

/** A message that the door takes, with one element in each list, but for the number at `path`. */
function messageWith(desc: DescMessage, path: string, number: bigint, row: Readonly<Record<string, unknown>>): Message {
  const values: Record<string, unknown> = {};
  for (const field of desc.fields) {
    const { localName, message } = field;
    const inner = path.startsWith(`${localName}.`) ? path.slice(localName.length + 1) : "";
    const isAt = path === localName;
    const wide = isAt ? number : ((row[localName] as bigint | undefined) ?? 1n);
    const narrow = isAt ? Number(number % 2n ** 32n) : (row[localName] ?? 1);
    const scalar = !isNumber(field) ? row[localName] : field.scalar === ScalarType.UINT64 ? wide : narrow;
    const value = message === undefined ? scalar : messageWith(message, inner, number, row);
    if (value === undefined || (field.presence === FeatureSet_FieldPresence.EXPLICIT && message === undefined && isNumber(field) && !isAt))
      continue;
    values[localName] = field.fieldKind === "list" ? [value] : value;
  }
  return create(desc, values);
}

for (const without of [[], ["geoTicketsApart"]] as readonly RuleName[][]) {
  const told =
    without.length === 0
      ? "no number of a call of another stamp changes tickets of other accounts, or ends their writes"
      : "a shipped ticket changes those of other accounts without the rule geoTicketsApart";
  test(`strangers: ${told}`, async () => {
    const sim = new Simulation({ seed: 4, rules: rulesWithout(...without) });
    await sim.run(async () => {
      const { b, victim, geo } = await begin(sim);
      const etagOf = async (name: string): Promise<number> => {
        const { headers } = await victim.done("PUT", `/private/${name}`, put, utf8("small"));
        // An ETag is 0x8 and the ticket in 14 digits.
        return Number.parseInt(String(headers.etag).replaceAll('"', "").slice(-14), 16);
      };
      const before = await etagOf("before");
      let names = 0;
      const methods = geo as unknown as Readonly<Record<string, (message: Message, at: typeof options) => Promise<Outcome<unknown>>>>;
      const taken: string[] = [];
      for (const { localName, input } of GeoDoor.methods) {
        for (const path of pathsOf(input)) {
          for (const number of [BigInt(shippedTicketMax), BigInt(Number.MAX_SAFE_INTEGER), 2n ** 63n - 1n, 2n ** 64n - 1n]) {
            const name = nameOf(`far-${++names}`);
            const key = keyIn(name);
            const value = encodeRow(blobSchema, { places: [] });
            const lowKey = name;
            const highKey = Uint8Array.from([...name.slice(0, -1), 0x01]);
            const texts = { account, table: "Blob", name, key, value, lowKey, highKey, payload: utf8("x"), mac: utf8("x") };
            const message = messageWith(input, path, number, { ...texts, level: 3, knownLevel, paired: 2n, lineage: 0n });
            const answer = await methods[localName]?.(message, options);
            const reason = answer?.ok === false ? answer.failure.reason : "taken";
            assert.ok(!["connectionLost", "bug", "internal"].includes(reason), `${localName} ${path} ${number}: ${reason}`);
            if (reason === "taken") taken.push(`${localName} ${path} ${number}`);
          }
        }
      }
      assert.ok(names >= 80, `${names} calls`);
      for (const where of ["ship shipment.commits.lastTicket", "seed part.lastTicket"]) {
        const own = taken.filter((one) => one.startsWith(where));
        assert.deepEqual(own, [`${where} ${shippedTicketMax}`], "the highest ticket that a range may give, and no other one");
      }
      const after = await etagOf("after");
      if (without.length > 0) {
        assert.ok(after - before > 2 ** 50, `${before}, then ${after}`);
        return;
      }
      assert.ok(after > before && after - before < 10_000, `${before}, then ${after}`);
      for (const server of [1, 2]) sim.crash(b.server(server));
      const later = await etagOf("later");
      assert.ok(later > after && later - before < 10_000, `${before}, then ${later}`);
    });
  });
}
