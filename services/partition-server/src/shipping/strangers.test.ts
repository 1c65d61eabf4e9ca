/** Rows that arrive as shipped ones: a partition server takes those that the primary of a copy here can have sent, whoever may call it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outcome, prefixEnd, timeNumber } from "@stamp/base";
import { accountKeys, encodeKey } from "@stamp/objects";
import { PartitionServer } from "@stamp/wire";
import { Client, container, container1, stamp, tableRange } from "../testing/stack-harness.ts";

const options = { timeoutMs: 2_000 };
const reasonOf = (answer: Outcome<unknown>): string => (answer.ok ? "applied" : answer.failure.reason);

const geoRolesEveryMsOf = { "has heard the roles": 100, "has not heard them yet": 3_600_000, "never asks": 0 };

for (const [when, geoRolesEveryMs] of Object.entries(geoRolesEveryMsOf))
  test(`strangers: a server that ${when} takes no rows as shipped ones, of accounts or of an account without a copy here`, async () => {
    const sim = stamp(43, { geoRolesEveryMs });
    await sim.run(async () => {
      await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
      const client = new Client(sim);
      await client.execute({ case: "putAccount", value: { account: { name: "victim", keys: ["a2V5"] } } });
      await container1(client);
      await sim.sleep(2_000);
      for (const [table, account] of [
        ["Account", "victim"],
        ["Account", "evil"],
        ["Blob", "devstoreaccount1"],
        ["Entity", "devstoreaccount1"],
        ["Message", "devstoreaccount1"],
      ] as const) {
        const { rangeId, rangeVersion, serverAddress } = await tableRange(sim, table);
        const server = sim.world("front-end-9").transport.client(serverAddress, PartitionServer);
        const name = encodeKey(table === "Account" ? [[account], []] : [[account], [0, "c"]]);
        const key = Uint8Array.from([...name, ...encodeKey([[]])]);
        const shipment = { epoch: 1n, name, commits: [{ sequence: 1n, lastTicket: 1n, rows: [{ key, value: Uint8Array.of(1, 0) }] }] };
        const { low, high } = accountKeys(account);
        const part = { epoch: 1n, sequence: 1n, lastTicket: 1n, lowKey: low, highKey: high };
        const answers = [
          await server.applyShipped({ rangeId, rangeVersion, shipment }, options),
          await server.applyShipped({ rangeId, rangeVersion, placed: shipment }, options),
          await server.applyScanned({ rangeId, rangeVersion, part }, options),
          await server.applyScanned({ rangeId, rangeVersion, placed: part }, options),
        ];
        const expected = table === "Account" ? "badRequest" : "notReady";
        assert.deepEqual(answers.map(reasonOf), [expected, expected, expected, expected], `${table} ${account}`);
      }
      assert.equal((await client.execute({ case: "getAccount", value: { account: "victim" } })).case, "account");
      assert.equal((await client.execute({ case: "getAccount", value: { account: "evil" } })).case, "error");
      assert.equal((await client.execute({ case: "getContainer", value: container })).case, "container");
    });
  });

test("strangers: of a copy a server takes what its primary can have sent, and nothing that reaches other accounts", async () => {
  const sim = stamp(43, { geoRolesEveryMs: 100 });
  await sim.run(async () => {
    await sim.until(() => sim.role("pm")?.status.ready === true, 30_000, "ready");
    const client = new Client(sim);
    await container1(client);
    const role = { role: "secondary", epoch: 5, obeyed: { operation: 7, phase: 1 }, peer: "north-1", peerDoors: ["north"], paired: 7 };
    const copy = { name: "copy", keys: ["a2V5"], geoRole: JSON.stringify(role) };
    await client.execute({ case: "putAccount", value: { account: copy } });
    await sim.sleep(2_000);
    const { low, high } = accountKeys("copy");
    const name = encodeKey([["copy"], [1, "con", 1, "b"]]);
    const second = Uint8Array.from([...name, 1]);
    const end = prefixEnd(name) as Uint8Array;
    const [word, honest] = [
      { epoch: 5n, paired: 7n },
      { sequence: 1n, lastTicket: 1n },
    ];
    const day = BigInt(timeNumber(sim.world("ps-1").clock.wallMs() + 2 * 86_400_000));
    const year = BigInt(timeNumber(sim.world("ps-1").clock.wallMs() + 400 * 86_400_000));
    const answersOf = async (table: string, said: object, numbers: object, keys: object = {}): Promise<string> => {
      const { rangeId, rangeVersion, serverAddress } = await tableRange(sim, table);
      const server = sim.world("front-end-9").transport.client(serverAddress, PartitionServer);
      const shipment = { ...word, name, ...said, commits: [{ ...honest, ...numbers, rows: [] }] };
      const part = { ...word, ...honest, lowKey: low, highKey: high, ...said, ...numbers, ...keys };
      const shipped = await server.applyShipped({ rangeId, rangeVersion, shipment }, options);
      const seeded = await server.applyScanned({ rangeId, rangeVersion, part }, options);
      return `${reasonOf(shipped)} ${reasonOf(seeded)}`;
    };
    const refusals: readonly (readonly [string, object, object, string])[] = [
      ["Blob", { epoch: 6n }, {}, "notReady"],
      ["Blob", { epoch: 10n ** 9n }, {}, "notReady"],
      ["Blob", { epoch: 4n }, {}, "notReady"],
      ["Entity", { paired: 8n }, {}, "notReady"],
      ["Entity", { paired: 0n }, {}, "notReady"],
      ["Message", {}, {}, "badRequest"],
    ];
    for (const [table, said, numbers, reason] of refusals)
      assert.equal(await answersOf(table, said, numbers), `${reason} ${reason}`, `${table} ${Object.entries(said)}`);
    const far = [{ sequence: day }, { sequence: 2n ** 53n - 1n }, { lineage: year }, { lineage: 2n ** 53n - 1n }];
    for (const numbers of far)
      assert.equal(await answersOf("Blob", numbers, numbers), "badRequest badRequest", String(Object.entries(numbers)));
    const outside = {
      "the neighbours behind it": { highKey: accountKeys("devstoreaccount1").high },
      "the rest of the range": { highKey: Uint8Array.of(255, 255) },
      "the neighbours before it": { lowKey: accountKeys("aaa").low },
      "a piece that ends behind its PartitionName": { lowKey: name, pieceOf: name, highKey: high },
      "the rest of the range, as a last piece": { lowKey: name, pieceOf: name, lastPiece: true, highKey: Uint8Array.of(255, 255) },
    };
    for (const [what, keys] of Object.entries(outside))
      assert.match(await answersOf("Blob", {}, {}, keys), / (badRequest|notReady)$/, what);
    assert.equal((await client.execute({ case: "getContainer", value: container })).case, "container");
    assert.equal(await answersOf("Blob", {}, {}, { lowKey: name, pieceOf: name, highKey: second }), "applied applied");
    assert.equal(
      await answersOf("Blob", {}, { sequence: 2n }, { lowKey: name, pieceOf: name, lastPiece: true, highKey: end }),
      "applied applied",
    );
    // Ten restores in a row, each from a copy of the metadata that the one before left.
    const lineage = BigInt(timeNumber(sim.world("ps-1").clock.wallMs())) + 10n * 2n ** 36n;
    assert.equal(await answersOf("Blob", { lineage }, {}), "applied applied");
    assert.equal(await answersOf("Entity", {}, {}), "applied applied");
  });
});
