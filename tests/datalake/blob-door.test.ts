/**
 * Every operation of the Blob service, asked for on an account with a hierarchical namespace at both doors that serve it: through the tree, or
 * refused by name. An operation that wrote to a blob of the path's name would go past the tree.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blobOperationNames } from "@stamp/azure-rest";
import { startStamp } from "@stamp/embedded";
import { type ExpectedRow, expectedRows } from "../conformance/authorization-table.ts";
import { accountKey, accountName } from "../conformance/scripted-stamp.ts";
import { Clients } from "../conformance/target.ts";

/** Operations that the doors have. The test walks all others, too: each of them is 501. */
const served = new Set([
  "ListContainers",
  "GetServiceProperties",
  "GetServiceStats",
  "GetUserDelegationKey",
  "GetAccountInformation",
  "CreateContainer",
  "GetContainerProperties",
  "GetContainerMetadata",
  "SetContainerMetadata",
  "GetContainerAcl",
  "SetContainerAcl",
  "DeleteContainer",
  "RestoreContainer",
  "LeaseContainer",
  "GetBlob",
  "GetBlobProperties",
  "GetBlobMetadata",
  "SetBlobMetadata",
  "SetBlobHeaders",
  "LeaseBlob",
  "PutBlob",
  "PutBlock",
  "PutBlockList",
  "DeleteBlob",
  "GetBlockList",
  "ListBlobs",
]);
/** They change what the walk looks at, and have tests of their own (blob-writes.test.ts). Here they are asked with what must be refused. */
const changing = new Set(["PutBlob", "PutBlock", "PutBlockList", "DeleteBlob", "DeleteBlob, no type"]);
/** Variants of served operations that are not here: tags, policies, snapshots, versions, and what was deleted. */
const isMissing = ({ operation }: ExpectedRow): boolean =>
  /^(Put|Delete|List).*, /.test(operation) && !["ListBlobs, uncommitted"].includes(operation);
/** Names of the table where the reference calls an operation otherwise than the product does. */
const names = new Map([
  ["GetServiceStats", "GetBlobServiceStats"],
  ["SetImmutabilityPolicy", "SetBlobImmutabilityPolicy"],
  ["DeleteImmutabilityPolicy", "DeleteBlobImmutabilityPolicy"],
  ["SetLegalHold", "SetBlobLegalHold"],
]);
const nameOf = ({ operation }: ExpectedRow): string => operation.split(/[ ,]/)[0] as string;
/** Leases come last: they would keep what they hold from deletions. */
const isLease = (row: ExpectedRow): boolean => nameOf(row) === "LeaseBlob";
const rows = [...expectedRows.blob.filter((row) => !isLease(row)), ...expectedRows.blob.filter(isLease)];

let stamp: Awaited<ReturnType<typeof startStamp>>;
before(async () => {
  stamp = await startStamp({ hierarchicalNamespace: true });
});
after(() => stamp?.stop());

const doorOf = (door: "blob" | "dfs"): Clients =>
  new Clients({ endpoint: new URL(stamp.endpoints[door]).origin, accountName, accountKey, stop: async () => {} });

async function filesystem(name: string) {
  const dfs = doorOf("dfs");
  const ask = async (method: string, target: string, body?: string, headers: Record<string, string> = {}): Promise<Response> => {
    const answer = await dfs.raw(method, `/${name}${target}`, {
      headers: { "x-ms-version": "2025-05-05", ...headers },
      ...(body && { body }),
    });
    return answer;
  };
  assert.equal((await ask("PUT", "?resource=filesystem")).status, 201);
  for (const path of ["b", "p"]) {
    assert.equal((await ask("PUT", `/${path}?resource=file`)).status, 201);
    assert.equal((await ask("PATCH", `/${path}?action=append&position=0`, "text")).status, 202);
    assert.equal((await ask("PATCH", `/${path}?action=flush&position=4`)).status, 200);
  }
  assert.equal((await ask("PUT", "/d/e?resource=directory")).status, 201);
  return ask;
}

test("blob door: the table of requests has every operation", () => {
  const walked = new Set(rows.map((row) => names.get(nameOf(row)) ?? nameOf(row)));
  assert.deepEqual(
    blobOperationNames.filter((name) => !walked.has(name)),
    [],
  );
});

for (const door of ["blob", "dfs"] as const) {
  test(`blob door: at the ${door} door every operation goes through the tree or is refused, whatever its path names`, async () => {
    const fs = `walk${door}`;
    const ask = await filesystem(fs);
    await filesystem(`${fs}-no`);
    const clients = doorOf(door);
    const { version } = { version: "2026-04-06" };
    const url = `${stamp.endpoints.blob}/${fs}/p`;
    const told: string[] = [];
    // A file, a name that is free, and a directory; requests on containers are sent once.
    for (const path of ["b", "free", "new/free", "d", "d/e"]) {
      for (const row of rows) {
        const operation = nameOf(row);
        const onPath = /^\/\{c\}[^/]*\/[bp](\?|$)/.test(row.target);
        if (!onPath && path !== "b") continue;
        if (changing.has(row.operation)) continue;
        // Data Lake Storage has a request of its own for it. A parameter without a value is none.
        if (door === "dfs" && row.method === "DELETE" && onPath && !/\?.*=./.test(row.target)) continue;
        const container = operation === "DeleteContainer" ? fs : `${fs}-gone`;
        const target = onPath
          ? row.target.replace(/^\/\{c\}[^/]*\/[bp]/, `/${fs}/${path}`)
          : row.target.replace("{c}", operation === "DeleteContainer" ? fs : operation.startsWith("Create") ? container : fs);
        const given = Object.entries(row.headers).map(([name, value]) => [name, value.replace("{url}", url)]);
        const headers = { "x-ms-version": version, ...Object.fromEntries(given) };
        const body = row.method === "PUT" || row.method === "POST" ? { body: "" } : {};
        const answer = await clients.raw(row.method, target, { headers, ...body });
        await answer.arrayBuffer();
        const isRefused = answer.status === 501 && answer.headers.get("x-ms-error-code") === "NotImplemented";
        // A mistake that is refused whatever the account is as good.
        const isMistake = answer.status === 400;
        const isServed = served.has(operation) && !isMissing(row);
        if (isServed ? isRefused : !isRefused && !isMistake) told.push(`${row.operation} ${path}: ${answer.status}`);
      }
    }
    assert.deepEqual(told, []);
    const paths = (await (await ask("GET", "?resource=filesystem&recursive=true")).json()) as { paths: { name: string }[] };
    assert.deepEqual(
      paths.paths.map(({ name }) => name),
      ["b", "d", "d/e", "p"],
    );
    for (const path of ["b", "p"]) assert.equal(await (await ask("GET", `/${path}`)).text(), "text");
    for (const state of ["snapshot", "versionid"])
      for (const method of ["GET", "HEAD"])
        assert.equal((await clients.raw(method, `/${fs}/b?${state}=2026-01-01T00%3A00%3A00.0000000Z`)).status, 404, `${method} ${state}`);
    const only = { headers: { "x-ms-delete-snapshots": "only" } };
    assert.equal((await clients.raw("DELETE", `/${fs}/p`, only)).status, 501);
  });
}
