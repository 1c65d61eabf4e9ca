/** Entities of a table with their types, and the messages at the front of a queue. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AccountPlace, EntityRow, MessageRow } from "../data-model.ts";
import { countText } from "../format.ts";
import { ListState, usePages } from "../pages.tsx";
import { Time } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";

/** Names of properties that a row shows as columns; further ones are in its last column. */
const columnsMax = 12;

export function Entities({ source, account, table }: AccountPlace & { readonly table: string }): JSX.Element {
  const [typed, setTyped] = useState("");
  const [filter, setFilter] = useState("");
  const pages = usePages((after) => source.entities(account, table, filter, after), `${account} ${table} ${filter}`);
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
      <ListState
        pages={pages}
        what="entities"
        empty={filter === "" ? "The table has no entity yet." : "No entity is as the filter says. Apply an empty filter for all."}
      >
        <VirtualTable
          label="Entities"
          columns={entityColumns(pages.items)}
          rows={pages.items}
          keyOf={({ partitionKey, rowKey }) => JSON.stringify([partitionKey, rowKey])}
          onEnd={pages.more}
        />
      </ListState>
    </>
  );
}

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

const messageColumns: readonly Column<MessageRow>[] = [
  { title: "Text", width: "minmax(14rem, 3fr)", cell: ({ text }) => <bdi>{text}</bdi> },
  { title: "Put", width: "11rem", cell: ({ insertedMs }) => <Time atMs={insertedMs} withDate /> },
  { title: "Ends", width: "11rem", cell: ({ expiresMs }) => <Time atMs={expiresMs} withDate /> },
  { title: "Taken before", width: "7rem", cell: ({ dequeueCount }) => countText(dequeueCount), isNumber: true },
];

export function Messages({ source, account, queue }: AccountPlace & { readonly queue: string }): JSX.Element {
  const pages = usePages(() => source.messages(account, queue), `${account} ${queue}`);
  return (
    <>
      <p>At most 32 messages at the front are shown, and stay there.</p>
      <ListState
        pages={pages}
        what="messages"
        empty="No message is visible. Those that a client has taken come back when its time has run out."
      >
        <VirtualTable label="Messages" columns={messageColumns} rows={pages.items} keyOf={({ id }) => id} />
      </ListState>
    </>
  );
}
