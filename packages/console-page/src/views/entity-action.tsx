/** Adds an entity, or edits one: keys, and properties with their types. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../data/action.tsx";
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
      <Properties properties={properties} onChange={setProperties} />
    </Action>
  );
}

interface PropertiesProps {
  readonly properties: readonly Property[];
  readonly onChange: (properties: readonly Property[]) => void;
}

function Properties({ properties, onChange }: PropertiesProps): JSX.Element {
  const put = (index: number, some: Partial<Property>): void =>
    onChange(properties.map((each, at) => (at === index ? { ...each, ...some } : each)));
  return (
    <div class="fields">
      {properties.map(({ name, type, value }, index) => (
        <div class="pair typed" key={index}>
          <input
            aria-label={`Property ${index + 1}`}
            value={name}
            required
            onInput={({ currentTarget }) => put(index, { name: currentTarget.value })}
          />
          <select aria-label={`Type ${index + 1}`} value={type} onChange={({ currentTarget }) => put(index, { type: currentTarget.value })}>
            {types.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
          <input
            aria-label={`Value ${index + 1}`}
            value={value}
            onInput={({ currentTarget }) => put(index, { value: currentTarget.value })}
          />
          <button
            type="button"
            aria-label={`Take out ${name || index + 1}`}
            onClick={() => onChange(properties.filter((_, at) => at !== index))}
          >
            ×
          </button>
        </div>
      ))}
      <button type="button" onClick={() => onChange([...properties, { name: "", type: "String", value: "" }])}>
        Add a property
      </button>
    </div>
  );
}
