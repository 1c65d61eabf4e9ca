/** Bearer tokens at the Table service, and user delegation SAS of a table, which the SDK has the fields of but does not make. */
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import type { TableClient } from "@azure/data-tables";
import { bearerHeaders, type DelegationKey, delegationKey, delegationVersion, secondsFromNow } from "../delegation.ts";
import { all, refusal, type TableClients } from "./target.ts";

/** "" is no bound. */
interface Range {
  readonly spk: string;
  readonly srk: string;
  readonly epk: string;
  readonly erk: string;
}

const everything: Range = { spk: "", srk: "", epk: "", erk: "" };
const seconds = (time: Date): string => time.toISOString().replace(/\.\d+Z$/, "Z");

/** "Create a user delegation SAS": the fields in the order in which they are signed, those of a table's range last. */
function tableSas(account: string, table: string, key: DelegationKey, permissions: string, range: Range): string {
  const by = {
    skoid: key.signedObjectId,
    sktid: key.signedTenantId,
    skt: seconds(key.signedStartsOn),
    ske: seconds(key.signedExpiresOn),
    sks: key.signedService,
    skv: key.signedVersion,
  };
  const expiry = seconds(secondsFromNow(300));
  const noUser = ["", ""];
  const noAddressOrProtocol = ["", ""];
  const text = [
    permissions,
    "",
    expiry,
    `/table/${account}/${table.toLowerCase()}`,
    ...Object.values(by),
    ...noUser,
    ...noAddressOrProtocol,
    delegationVersion,
    ...Object.values(range),
  ].join("\n");
  const sig = createHmac("sha256", Buffer.from(key.value, "base64")).update(text).digest("base64");
  const bounds = Object.fromEntries(Object.entries(range).filter(([, value]) => value !== ""));
  return new URLSearchParams({ sv: delegationVersion, tn: table, sp: permissions, se: expiry, ...by, ...bounds, sig }).toString();
}

export function bearerSuite(clients: () => TableClients): void {
  const withSas = (table: TableClient, key: DelegationKey, permissions = "raud", range: Range = everything): TableClient =>
    clients().clientBy(tableSas(clients().target.accountName, table.tableName, key, permissions, range), table.tableName);

  describe("bearers", () => {
    test("a role says what a bearer may do with entities", async () => {
      const table = await clients().table();
      const ask = async (method: string, role: string): Promise<number> => {
        const headers = { ...(await bearerHeaders(clients(), role)), accept: "application/json", "content-type": "application/json" };
        const body = method === "GET" ? {} : { body: JSON.stringify({ PartitionKey: "p", RowKey: role.replaceAll(" ", "") }) };
        return (await clients().raw(method, `/${table.tableName}`, { sign: false, headers, ...body })).status;
      };
      assert.deepEqual([await ask("GET", "readers"), await ask("POST", "readers")], [200, 403]);
      assert.deepEqual([await ask("GET", "Storage Table Data Contributor"), await ask("POST", "writers")], [200, 201]);
      assert.equal(await ask("GET", "Storage Queue Data Contributor"), 403);
    });

    test("a user delegation SAS of a table: signed by a key of the bearer's, for tables only, never more than its role", async () => {
      const table = await clients().table();
      const writer = await delegationKey(clients(), "writers", "/");
      assert.equal(writer.signedService, "t");
      await withSas(table, writer).createEntity({ partitionKey: "p", rowKey: "r" });
      assert.equal((await all(withSas(table, writer).listEntities())).length, 1);
      assert.match(await refusal(withSas(table, writer, "r").deleteEntity("p", "r")), /^403/);
      const reader = await delegationKey(clients(), "readers", "/");
      assert.equal((await withSas(table, reader).getEntity("p", "r")).rowKey, "r");
      assert.match(await refusal(withSas(table, reader).createEntity({ partitionKey: "p", rowKey: "s" })), /^403/);
      assert.match(await refusal(withSas(table, reader).submitTransaction([["delete", { partitionKey: "p", rowKey: "r" }]])), /^403/);
      assert.match(await refusal(withSas(table, { ...reader, signedObjectId: "writers" }).getEntity("p", "r")), /^403/);
      const other = await clients().table();
      const elsewhere = tableSas(clients().target.accountName, table.tableName, writer, "raud", everything);
      assert.match(await refusal(all(clients().clientBy(elsewhere, other.tableName).listEntities())), /^403/);
    });

    test("a user delegation SAS with key ranges shows what lies inside them, and its range is signed", async () => {
      const table = await clients().table();
      for (const partitionKey of ["a", "b", "c"]) await table.createEntity({ partitionKey, rowKey: "1" });
      const key = await delegationKey(clients(), "readers", "/");
      const ranged = withSas(table, key, "r", { spk: "b", srk: "", epk: "b", erk: "" });
      assert.deepEqual(
        (await all(ranged.listEntities())).map(({ partitionKey }) => partitionKey),
        ["b"],
      );
      assert.match(await refusal(ranged.getEntity("a", "1")), /^403/);
      const sas = tableSas(clients().target.accountName, table.tableName, key, "r", { spk: "b", srk: "", epk: "b", erk: "" });
      const wider = clients().clientBy(sas.replace("spk=b", "spk=a"), table.tableName);
      assert.match(await refusal(all(wider.listEntities())), /^403/);
    });

    test("a user delegation key is for bearers only", async () => {
      const path = "/?restype=service&comp=userdelegationkey";
      const asked = await clients().raw("POST", path, { body: "<KeyInfo/>", headers: { "content-type": "application/xml" } });
      assert.deepEqual([asked.status, asked.headers.get("x-ms-error-code")], [403, "AuthenticationFailed"]);
      const headers = { ...(await bearerHeaders(clients(), "writers")), "content-type": "application/xml" };
      const wrong = await clients().raw("POST", path, { sign: false, body: "<KeyInfo><Expiry>then</Expiry></KeyInfo>", headers });
      assert.deepEqual([wrong.status, wrong.headers.get("x-ms-error-code")], [400, "InvalidXmlNodeValue"]);
    });
  });
}
