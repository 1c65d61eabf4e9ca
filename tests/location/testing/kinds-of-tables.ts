/** Tables and entities of every type that the SDK can make, and everything that the SDK tells of them. */
import type { TableClient, TableServiceClient } from "@azure/data-tables";
import { TableTransaction } from "@azure/data-tables";
import { type Told, told } from "./told.ts";

export type TableNamed = (name: string) => TableClient;

export async function setTableService(service: TableServiceClient): Promise<void> {
  await service.setProperties({
    cors: [{ allowedOrigins: "*", allowedMethods: "GET", allowedHeaders: "*", exposedHeaders: "*", maxAgeInSeconds: 5 }],
  });
}

/** Tables whose names begin with `prefix`: with stored access policies, with entities of every type, empty, deleted. */
export async function writeTables(tableNamed: TableNamed, prefix: string): Promise<void> {
  const rows = tableNamed(`${prefix}rows`);
  await rows.createTable();
  await rows.setAccessPolicy([
    { id: "readers", accessPolicy: { start: new Date(1_700_000_000_000), expiry: new Date(1_900_000_000_000), permission: "r" } },
  ]);
  await rows.createEntity({
    ...{
      partitionKey: "types",
      rowKey: "all",
      text: "ä and \u0000",
      flag: true,
      whole: 7,
      part: 1.5,
      none: { type: "Double", value: "NaN" },
    },
    ...{ long: { type: "Int64", value: "9007199254740993" }, id: { type: "Guid", value: "c9da6455-213d-42c9-9a79-3e9149a57833" } },
    ...{ at: { type: "DateTime", value: "2026-11-26T01:02:03.1234567Z" }, bytes: new Uint8Array([0, 1, 255]) },
  });
  const together = new TableTransaction();
  for (let at = 0; at < 50; at++) together.createEntity({ partitionKey: "together", rowKey: String(at).padStart(3, "0"), at });
  await rows.submitTransaction(together.actions);
  await rows.updateEntity({ partitionKey: "together", rowKey: "007", at: -1 }, "Replace");
  await rows.updateEntity({ partitionKey: "together", rowKey: "008", more: "merged" }, "Merge");
  await rows.deleteEntity("together", "009");
  await tableNamed(`${prefix}empty`).createTable();
  await tableNamed(`${prefix}gone`).createTable();
  await tableNamed(`${prefix}gone`).createEntity({ partitionKey: "p", rowKey: "r" });
  await tableNamed(`${prefix}gone`).deleteTable();
}

export async function toldOfTables(service: TableServiceClient, tableNamed: TableNamed): Promise<Told[]> {
  const all: Told[] = [told("table service", await service.getProperties())];
  for await (const { name = "" } of service.listTables()) {
    all.push(told(`table ${name}`, name), told(`policies of table ${name}`, await tableNamed(name).getAccessPolicy()));
    for await (const entity of tableNamed(name).listEntities({ disableTypeConversion: true }))
      all.push(told(`entity ${name} ${entity.partitionKey} ${entity.rowKey}`, entity));
  }
  return all;
}
