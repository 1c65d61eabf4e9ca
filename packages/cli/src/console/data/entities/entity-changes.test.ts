import assert from "node:assert/strict";
import { test } from "node:test";
import type { DataClients } from "../clients.ts";
import { importEntities } from "./entity-changes.ts";

const entities = ["there", "new", "new too"].map((rowKey) => ({ partitionKey: "p", rowKey, properties: [] }));

function world(refusal: string) {
  const calls: string[] = [];
  const table = {
    createEntity: async ({ rowKey }: { readonly rowKey: string }): Promise<void> => {
      if (rowKey === "there") throw Object.assign(new Error(refusal), { details: { errorCode: refusal } });
      calls.push(`create ${rowKey}`);
    },
    upsertEntity: async ({ rowKey }: { readonly rowKey: string }, mode: string): Promise<void> => {
      calls.push(`${mode} ${rowKey}`);
    },
  };
  return { calls, clients: { table: async () => table } as unknown as DataClients };
}

const fields = { account: "acme", table: "t", entities };
const { signal } = new AbortController();

test("import of entities: one that is there is kept and counted, or replaced if that was chosen", async () => {
  const { calls, clients } = world("EntityAlreadyExists");
  assert.deepEqual(await importEntities(clients, { ...fields, replace: false }, signal), { number: 2, kept: 1 });
  assert.deepEqual(calls.splice(0), ["create new", "create new too"]);
  assert.deepEqual(await importEntities(clients, { ...fields, replace: true }, signal), { number: 3, kept: 0 });
  assert.deepEqual(calls, ["Replace there", "Replace new", "Replace new too"]);
});

test("import of entities: another refusal is told", async () => {
  await assert.rejects(importEntities(world("TableNotFound").clients, fields, signal), /TableNotFound/);
});
