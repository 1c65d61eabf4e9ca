/**
 * Makes containers, tables and queues, and removes them with all that is in them. They have no mark that says whether they are still as the
 * page showed them: the page has a person type the name of what is removed.
 */
import type { DataClients } from "./clients.ts";
import { type Fields, wordIn } from "./fields.ts";

const accountIn = (fields: Fields): string => wordIn(fields, "account");

export async function createContainer(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await clients.container(accountIn(fields), wordIn(fields, "container"))).create({ abortSignal });
  return {};
}

export async function deleteContainer(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await clients.container(accountIn(fields), wordIn(fields, "container"))).delete({ abortSignal });
  return {};
}

/** The SDK keeps it to itself if the table is there already. */
export async function createTable(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const table = await clients.table(accountIn(fields), wordIn(fields, "table"));
  let isThere = false;
  await table.createTable({
    abortSignal,
    onResponse: ({ status }) => {
      isThere = status === 409;
    },
  });
  if (isThere) throw Object.assign(new Error("The table is there already: choose another name."), { code: "TableAlreadyExists" });
  return {};
}

export async function deleteTable(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await clients.table(accountIn(fields), wordIn(fields, "table"))).deleteTable({ abortSignal });
  return {};
}

/** The service answers with 204 if a queue without metadata is there already. */
export async function createQueue(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  const { _response: answer } = await (await clients.queue(accountIn(fields), wordIn(fields, "queue"))).create({ abortSignal });
  if (answer.status === 204)
    throw Object.assign(new Error("The queue is there already: choose another name."), { code: "QueueAlreadyExists" });
  return {};
}

export async function deleteQueue(clients: DataClients, fields: Fields, abortSignal: AbortSignal): Promise<object> {
  await (await clients.queue(accountIn(fields), wordIn(fields, "queue"))).delete({ abortSignal });
  return {};
}
