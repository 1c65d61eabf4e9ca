/** Entities of a table with their types, to filter, add, edit and delete. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../data/action.tsx";
import type { AccountPlace, EntityRow } from "../data/data-model.ts";
import { ListState, usePages } from "../pages.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";
import { EntityAction } from "./entity-action.tsx";
import { EntityFiles } from "./entity-files.tsx";
import { Share } from "./share.tsx";

/** Names of properties that a row shows as columns; further ones are in its last column. */
const columnsMax = 12;

export function Entities({ source, account, table }: AccountPlace & { readonly table: string }): JSX.Element {
  const [typed, setTyped] = useState("");
  const [filter, setFilter] = useState("");
  const pages = usePages((after) => source.entities(account, table, filter, after), `${account} ${table} ${filter}`);
  const place = { source, account, table };
  const actions: Column<EntityRow> = {
    title: "Actions",
    width: "11rem",
    cell: (row) => (
      <>
        <EntityAction place={place} row={row} onDone={pages.reload} />{" "}
        <Action
          label="Delete"
          name={`Delete ${keyText(row)}`}
          title="Delete the entity?"
          submit="Delete"
          isFinal
          run={() => source.change("delete-entity", { account, table, ...keysOf(row) }).then(pages.reload)}
        >
          <p>
            <bdi>{keyText(row)}</bdi>
          </p>
        </Action>
      </>
    ),
  };
  return (
    <>
      <form
        class="bar"
        onSubmit={(event) => {
          event.preventDefault();
          setFilter(typed);
        }}
      >
        <label>
          Filter{" "}
          <input
            type="search"
            value={typed}
            placeholder="PartitionKey eq 'north' and Count gt 5"
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
        <button type="submit">Apply</button>
      </form>
      <div class="buttons">
        <EntityAction place={place} onDone={pages.reload} />
        <EntityFiles {...place} filter={filter} onDone={pages.reload} />
        <Share source={source} kind="table" fields={{ account, table }} />
      </div>
      <ListState
        pages={pages}
        what="entities"
        empty={filter === "" ? "The table has no entity yet." : "No entity is as the filter says. Apply an empty filter for all."}
      >
        <VirtualTable
          label="Entities"
          columns={[...entityColumns(pages.items), actions]}
          rows={pages.items}
          keyOf={({ partitionKey, rowKey }) => JSON.stringify([partitionKey, rowKey])}
          onEnd={pages.more}
        />
      </ListState>
    </>
  );
}

const keysOf = ({ partitionKey, rowKey, etag }: EntityRow) => ({ partitionKey, rowKey, etag });
const keyText = ({ partitionKey, rowKey }: EntityRow): string => `${partitionKey} / ${rowKey}`;

function entityColumns(rows: readonly EntityRow[]): readonly Column<EntityRow>[] {
  const all = new Set(rows.slice(0, 1_000).flatMap(({ properties }) => properties.map(({ name }) => name)));
  const names = [...all].slice(0, columnsMax);
  return [
    { title: "PartitionKey", width: "minmax(9rem, 1fr)", cell: ({ partitionKey }) => <bdi>{partitionKey}</bdi> },
    { title: "RowKey", width: "minmax(9rem, 1fr)", cell: ({ rowKey }) => <bdi>{rowKey}</bdi> },
    ...names.map((name) => ({
      title: name,
      width: "minmax(10rem, 1fr)",
      cell: ({ properties }: EntityRow) => <Property of={properties.find((each) => each.name === name)} />,
    })),
    ...(all.size > names.length
      ? [
          {
            title: "Further properties",
            width: "minmax(12rem, 2fr)",
            cell: ({ properties }: EntityRow) => (
              <bdi>
                {properties
                  .filter(({ name }) => !names.includes(name))
                  .map(({ name, value }) => `${name}=${value}`)
                  .join(", ")}
              </bdi>
            ),
          },
        ]
      : []),
  ];
}

const Property = ({ of }: { readonly of: EntityRow["properties"][number] | undefined }): JSX.Element | null =>
  of === undefined ? null : (
    <>
      <bdi>{of.value}</bdi> {of.type === "String" ? null : <small>{of.type}</small>}
    </>
  );
