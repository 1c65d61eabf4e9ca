import assert from "node:assert/strict";
import { test } from "node:test";
import { dataClients } from "./clients.ts";

test("clients: names that no account, container, queue or table can have are refused before anybody is asked", async () => {
  const clients = dataClients(() => {
    throw new Error("the stamp was asked");
  });
  for (const name of ["../x", "..", ".", "x/messages", "x?comp=acl", "x#", "x%2Fy", "x\\y", "", "ü", "a".repeat(64)]) {
    const wrong = /^Error: no .* is named .*: a name has 3 to 63 letters, digits and hyphens$/;
    await assert.rejects(clients.blob("acme", name, "n"), wrong, name);
    await assert.rejects(clients.container("acme", name), wrong, name);
    await assert.rejects(clients.queue("acme", name), wrong, name);
    await assert.rejects(clients.table("acme", name), wrong, name);
    await assert.rejects(clients.tableSas("acme", name, "r", new Date(0)), wrong, name);
  }
  for (const name of ["$root", "$web", "a-b", "files"]) await assert.rejects(clients.container("acme", name), /the stamp was asked/);
});
