/** Blobs of a container by folders, deleted ones if the reader wants them, and uploads. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../data/action.tsx";
import type { AccountPlace, BlobRow } from "../data/data-model.ts";
import { bytesText } from "../format.ts";
import { ListState, usePages } from "../pages.tsx";
import { to } from "../store.ts";
import { Badge, Time } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";
import { Share } from "./share.tsx";
import { Uploads } from "./upload-list.tsx";

interface BlobsProps extends AccountPlace {
  readonly container: string;
  readonly prefix: string;
}

export function Blobs({ source, account, container, prefix }: BlobsProps): JSX.Element {
  const [withDeleted, setWithDeleted] = useState(false);
  const pages = usePages(
    (after) => source.blobs(account, container, prefix, withDeleted, after),
    `${account} ${container} ${prefix} ${withDeleted}`,
  );
  const deletedColumn: Column<BlobRow> = {
    title: "State",
    width: "12rem",
    cell: ({ name, isDeleted }) =>
      isDeleted ? (
        <>
          <Badge tone="warn">deleted</Badge>{" "}
          <Action
            label="Undelete"
            name={`Undelete ${name}`}
            title="Undelete the blob?"
            submit="Undelete"
            run={() => source.change("undelete-blob", { account, container, name }).then(pages.reload)}
          >
            <p>
              <bdi>{name}</bdi>, with its snapshots
            </p>
          </Action>
        </>
      ) : null,
  };
  const columns: readonly Column<BlobRow>[] = [
    {
      title: "Name",
      width: "minmax(14rem, 3fr)",
      cell: ({ name, isFolder, isDeleted }) =>
        isDeleted ? (
          <bdi>{name.slice(prefix.length) || "(empty)"}</bdi>
        ) : (
          <a href={to("data", account, isFolder ? "blobs" : "blob", container, name)}>
            <bdi>{name.slice(prefix.length) || "(empty)"}</bdi>
          </a>
        ),
    },
    { title: "Size", width: "6rem", cell: ({ bytes, isFolder }) => (isFolder ? "" : bytesText(bytes)), isNumber: true },
    { title: "Changed", width: "11rem", cell: ({ modifiedMs }) => (modifiedMs === null ? "" : <Time atMs={modifiedMs} withDate />) },
    { title: "Kind", width: "7rem", cell: ({ type, isFolder }) => (isFolder ? "folder" : type) },
    { title: "Content type", width: "minmax(9rem, 1fr)", cell: ({ contentType }) => <bdi>{contentType}</bdi> },
    ...(withDeleted ? [deletedColumn] : []),
  ];
  return (
    <>
      <div class="bar">
        <label>
          <input type="checkbox" checked={withDeleted} onChange={({ currentTarget }) => setWithDeleted(currentTarget.checked)} /> Deleted
          blobs, too
        </label>
        <Share source={source} kind="container" fields={{ account, container }} />
      </div>
      <Uploads source={source} account={account} container={container} prefix={prefix} onDone={pages.reload} />
      <ListState
        pages={pages}
        what="blobs and folders"
        empty="Nothing lies here yet. Drop files above, or upload by any SDK of Azure Storage."
      >
        <VirtualTable
          label="Blobs"
          columns={columns}
          rows={pages.items}
          keyOf={({ name, isFolder, isDeleted }) => `${isFolder} ${isDeleted} ${name}`}
          onEnd={pages.more}
        />
      </ListState>
    </>
  );
}
