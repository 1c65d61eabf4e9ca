/** Converts results of operations on tables or entities to their form on the wire. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Entity, Table, TableResult } from "@stamp/objects";
import { type EntitySchema, propertyToWire, signedIdentifiersToWire, type TableResultSchema, type TableSchema, toWire } from "@stamp/wire";

export function tableResultToWire(result: TableResult): MessageInitShape<typeof TableResultSchema> {
  switch (result.case) {
    case "table":
      return { kind: { case: "table", value: tableToWire(result.value) } };
    case "tables":
      return { kind: { case: "tables", value: { ...result.value, tables: result.value.tables.map(tableToWire) } } };
    case "changed":
      return { kind: { case: "changed", value: { timestamps: [...result.value.timestamps] } } };
    case "entity":
      return { kind: { case: "entity", value: entityToWire(result.value) } };
    case "entities": {
      const { entities, rows, last, more, rangeEnded, rowsRead } = result.value;
      const found = rows ? { rows } : { entities: entities.map(entityToWire) };
      const page = { ...found, more, rangeEnded, rowsRead };
      return { kind: { case: "entities", value: last ? { ...page, last } : page } };
    }
  }
}

const tableToWire = ({ name, incarnation, signedIdentifiers }: Table): MessageInitShape<typeof TableSchema> => ({
  name,
  incarnation: toWire(incarnation),
  signedIdentifiers: signedIdentifiersToWire(signedIdentifiers),
});

const entityToWire = ({ partitionKey, rowKey, timestamp, properties }: Entity): MessageInitShape<typeof EntitySchema> => ({
  key: { partitionKey, rowKey },
  timestamp,
  properties: properties.map(propertyToWire),
});
