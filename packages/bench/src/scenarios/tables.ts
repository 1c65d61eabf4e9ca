/** Scenarios of the Table service. Entities have 960 characters in one property, about 1 KiB with their keys. */
import { TableClient, type TableRow, transactionStatus } from "../table-client.ts";
import { allAtOnce, kib, mustAnswer, type NameSpace, type Scenario, type Scenarios } from "./scenario.ts";

const rows = 1_000;
const transactionRows = 100;
const partition = "all";
const data = "x".repeat(960);
const rowOf = (partitionKey: string, number: number): TableRow => ({ partitionKey, rowKey: String(number).padStart(9, "0"), data });

export function tableScenarios(connectionString: string, space: NameSpace): Scenarios {
  const client = new TableClient(connectionString);
  const inserts = `${space.shared}Inserts`;
  const entities = `${space.shared}Entities`;
  /** Returns the partitionKeys that no other process uses. */
  const own = (number: number): string => `${space.own}-${number}`;
  const insert = async (table: string, some: readonly TableRow[]): Promise<boolean> => {
    const answer = await client.insert(table, some);
    if (!transactionStatus(answer).ok) throw new Error(`a transaction was not done: ${answer.status}`);
    return true;
  };
  const transaction = (partitionKey: string, from: number): TableRow[] =>
    Array.from({ length: transactionRows }, (_, at) => rowOf(partitionKey, from + at));
  const fill = async (): Promise<void> => {
    mustAnswer(await client.createTable(entities), 201, 204, 409);
    if ((await client.get(entities, partition, rowOf(partition, rows - 1).rowKey)).status === 200) return;
    await allAtOnce(rows / transactionRows, 1, (batch) => insert(entities, transaction(partition, batch * transactionRows)));
  };
  const makeInserts = async (): Promise<void> => void mustAnswer(await client.createTable(inserts), 201, 204, 409);

  const scenarios: readonly Scenario[] = [
    {
      name: "table insert 1 KiB",
      contentBytes: kib,
      like: { method: "PUT", bytes: kib },
      prepare: makeInserts,
      operation: async (number) => mustAnswer(await client.insertOne(inserts, rowOf(own(number % 16), number)), 201, 204),
    },
    {
      name: "table point read",
      contentBytes: kib,
      like: { method: "GET", bytes: kib },
      prepare: fill,
      operation: async (number) => mustAnswer(await client.get(entities, partition, rowOf(partition, number % rows).rowKey), 200),
    },
    {
      name: "table transaction of 100",
      contentBytes: transactionRows * kib,
      like: { method: "PUT", bytes: transactionRows * kib },
      prepare: makeInserts,
      operation: (number) => insert(inserts, transaction(`${own(number)}-transaction`, 0)),
    },
    {
      name: "table query, 1,000 entities",
      contentBytes: 0,
      like: { method: "GET", bytes: kib },
      prepare: fill,
      operation: async () => {
        const answer = await client.query(entities, `PartitionKey eq '${partition}'`, rows);
        mustAnswer(answer, 200);
        const found = answer.body.toString("latin1").split('"RowKey"').length - 1;
        if (found !== rows) throw new Error(`a page has ${found} entities`);
        return true;
      },
    },
  ];
  return { all: scenarios, close: () => client.close() };
}
