/** Rows that arrive for accounts that have no copy here: a partition server takes none, whoever may ship to it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome } from "@stamp/base";
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
