/** Adds an entity, or edits one: keys, and properties with their types. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action, NamedFields } from "../data/action.tsx";
import type { AccountPlace, EntityRow } from "../data/data-model.ts";

const types = ["String", "Boolean", "Int32", "Int64", "Double", "DateTime", "Guid", "Binary"];

type Property = EntityRow["properties"][number];

interface EntityActionProps {
  readonly place: AccountPlace & { readonly table: string };
  /** Undefined: a new entity. */
  readonly row?: EntityRow;
  readonly onDone: () => void;
}

export function EntityAction({ place, row, onDone }: EntityActionProps): JSX.Element {
  const { source, account, table } = place;
  const [partitionKey, setPartitionKey] = useState("");
  const [rowKey, setRowKey] = useState("");
  const [properties, setProperties] = useState<readonly Property[]>([]);
  const begin = (): void => {
    setPartitionKey(row?.partitionKey ?? "");
    setRowKey(row?.rowKey ?? "");
    setProperties(row?.properties ?? []);
  };
  const save = async (): Promise<void> => {
    const names = properties.map(({ name }) => name);
    const removed = row?.properties.some(({ name }) => !names.includes(name)) === true;
    const old = row === undefined ? {} : { etag: row.etag, removed };
    await source.change("put-entity", { account, table, partitionKey, rowKey, properties, ...old });
    onDone();
  };
  return (
    <Action
      label={row === undefined ? "Add an entity" : "Edit"}
      name={row === undefined ? "Add an entity" : `Edit ${row.partitionKey} / ${row.rowKey}`}
      title={row === undefined ? "Add an entity" : "Edit the entity"}
      submit="Save"
      onOpen={begin}
      run={save}
    >
      <label>
        PartitionKey{" "}
        <input value={partitionKey} readOnly={row !== undefined} onInput={({ currentTarget }) => setPartitionKey(currentTarget.value)} />
      </label>
      <label>
        RowKey <input value={rowKey} readOnly={row !== undefined} onInput={({ currentTarget }) => setRowKey(currentTarget.value)} />
      </label>
      <NamedFields
        rows={properties}
        onChange={setProperties}
        what="Property"
        add="Add a property"
        blank={{ name: "", type: "String", value: "" }}
        between={({ type }, number, put) => (
          <select aria-label={`Type ${number}`} value={type} onChange={({ currentTarget }) => put({ type: currentTarget.value })}>
            {types.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        )}
      />
    </Action>
  );
}
