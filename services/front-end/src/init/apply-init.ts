/**
 * Makes what an init file says of accounts that are there, as far as it is not there yet. A second run changes nothing: what is there stays as it is, unless the file says
 * `overwrite`. Several front-ends may do it at once.
 */
import { defaultServiceProperties, parseServiceProperties, servicePropertiesXml } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { InitCounts, InitTarget } from "./applying.ts";
import { applyContainer } from "./containers.ts";
import { type Init, InitError } from "./load-init.ts";
import type { InitService } from "./own-requests.ts";
import { applyQueue } from "./queues.ts";
import type { InitAccount, InitCorsRule } from "./schema.ts";
import { applyTable } from "./tables.ts";

/** Throws InitError at the first thing that the stamp refuses. */
export async function applyInit(applying: InitTarget, all: readonly Init[]): Promise<InitCounts> {
  const counts: InitCounts = { containers: 0, tables: 0, queues: 0, policies: 0, cors: 0, blobs: 0, entities: 0, messages: 0 };
  for (const init of all) {
    for (const account of init.accounts) {
      try {
        await applyAccount(applying, init, account, counts);
      } catch (error) {
        throw new InitError(`${init.name}: ${(error as Error).message}`);
      }
    }
  }
  return counts;
}

async function applyAccount(applying: InitTarget, init: Init, account: InitAccount, counts: InitCounts): Promise<void> {
  if (!(await applying.account(account.name))) throw new InitError("the front-end stops");
  for (const service of ["blob", "queue", "table"] as const) {
    const rules = account.cors?.[service];
    if (rules !== undefined) await applyCors(applying, account, service, rules, counts);
  }
  for (const container of account.containers) await applyContainer(applying, init, account.name, container, counts);
  for (const table of account.tables) await applyTable(applying, init, account.name, table, counts);
  for (const queue of account.queues) await applyQueue(applying, init, account.name, queue, counts);
}

async function applyCors(
  { requests, differs }: InitTarget,
  { name, cors }: InitAccount,
  service: InitService,
  rules: readonly InitCorsRule[],
  counts: InitCounts,
): Promise<void> {
  const path = "/?restype=service&comp=properties";
  const got = await requests.ask(service, name, { method: "GET", path }, [200]);
  const held = parseServiceProperties(got.body, service, defaultServiceProperties);
  if (!held.ok) throw new InitError(`service properties of ${service} of ${name}: ${held.error.code}`);
  if (JSON.stringify(held.value.cors) === JSON.stringify(rules)) return;
  if (held.value.cors.length > 0 && cors?.overwrite !== true) {
    differs(`${service} of ${name} has other CORS rules than the init file says; they stay ("overwrite": true replaces them)`);
    return;
  }
  const [whole = ""] =
    /<Cors>.*<\/Cors>|<Cors ?\/>/s.exec(servicePropertiesXml({ ...held.value, cors: rules }, service, "2025-01-05")) ?? [];
  const body = utf8(`<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>${whole}</StorageServiceProperties>`);
  await requests.ask(service, name, { method: "PUT", path, headers: { "content-type": "application/xml" }, body }, [202]);
  counts.cors++;
}
