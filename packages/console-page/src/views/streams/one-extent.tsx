/** One extent: where its replicas or fragments are, and the blobs with bytes in it. */
import type { JSX } from "preact";
import { bytesText } from "../../format.ts";
import type { ExtentRow, ExtentUserRow, Source } from "../../model.ts";
import { ListState, useLoaded, usePages } from "../../pages.tsx";
import { to } from "../../store.ts";
import { Card, Empty } from "../../ui.tsx";
import { type Column, VirtualTable } from "../../virtual-table.tsx";
import { extentColumns } from "./extent-columns.tsx";

interface OneExtentProps {
  readonly source: Source;
  readonly id: string;
  /** True at the address that shows the blobs, too. */
  readonly withBlobs: boolean;
}

export function OneExtent({ source, id, withBlobs }: OneExtentProps): JSX.Element {
  const { value: found, problem } = useLoaded(() => source.extent(id));
  return (
    <>
      <nav class="path" aria-label="Path">
        <a href={to("extents")}>Extents</a> <span aria-hidden="true">›</span> <strong>{id}</strong>
      </nav>
      {problem !== undefined ? (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      ) : found === undefined ? (
        <Empty title="Asking for the extent…" />
      ) : found.length === 0 ? (
        <Empty title={`There is no extent ${id}`}>It was given back, or never made. Its number is not used again.</Empty>
      ) : (
        <>
          <VirtualTable label="The extent" columns={extentColumns(true)} rows={found} keyOf={(row) => row.id} />
          {found.map((extent) => (
            <Users key={extent.id} source={source} extent={extent} withBlobs={withBlobs} />
          ))}
        </>
      )}
    </>
  );
}

/** Purposes of the streams of a range, by the ends of their names. */
const purposes: readonly (readonly [string, string])[] = [
  [
    "/commit-log",
    "It is a part of a commit log: every change of the rows of a range, small blobs among them, until a checkpoint has them.",
  ],
  ["/row-data", "It has checkpoints: the rows of a range, small blobs among them, in the order of their keys."],
  ["/metadata", "It has the state of a range: which checkpoints there are."],
];

function Users({
  source,
  extent,
  withBlobs,
}: {
  readonly source: Source;
  readonly extent: ExtentRow;
  readonly withBlobs: boolean;
}): JSX.Element {
  const { id, stream } = extent;
  const purpose = purposes.find(([end]) => stream.endsWith(end))?.[1];
  return (
    <Card title="What refers to it" wide>
      {purpose !== undefined ? (
        <p>{purpose}</p>
      ) : withBlobs ? (
        <Blobs source={source} id={id} />
      ) : (
        <>
          <p>Bytes of blobs. To find the blobs, the rows of the range are read.</p>
          <p>
            <a href={to("extents", id, "blobs")}>Find the blobs</a>
          </p>
        </>
      )}
    </Card>
  );
}

const userColumns: readonly Column<ExtentUserRow>[] = [
  {
    title: "Blob",
    width: "minmax(14rem, 4fr)",
    cell: ({ account, container, name }) =>
      container.startsWith("~") ? (
        <bdi>{name}</bdi>
      ) : (
        <a href={to("data", account, "blob", container, name)}>
          <bdi>{name}</bdi>
        </a>
      ),
  },
  { title: "Container or share", width: "minmax(9rem, 2fr)", cell: ({ container }) => <bdi>{container.replace(/^~/, "")}</bdi> },
  { title: "Account", width: "minmax(9rem, 1fr)", cell: ({ account }) => account },
  { title: "Bytes here", width: "7rem", cell: ({ bytes }) => bytesText(bytes), isNumber: true },
  { title: "Range", width: "minmax(6rem, 1fr)", cell: ({ range }) => range },
];

function Blobs({ source, id }: { readonly source: Source; readonly id: string }): JSX.Element {
  const pages = usePages((after) => source.extentUsers(id, after), id);
  return (
    <>
      <p>With their snapshots, versions and blocks that are not committed. A blob that was deleted stays here until it is collected.</p>
      <ListState
        pages={pages}
        what="blobs"
        empty="No row refers to bytes of this extent now: the collector gives it back, if no upload has bytes in it."
      >
        <VirtualTable
          label="Blobs with bytes in the extent"
          columns={userColumns}
          rows={pages.items}
          keyOf={({ account, container, name, range, bytes }) => [account, container, name, range, bytes].join(" ")}
          onEnd={pages.more}
        />
      </ListState>
    </>
  );
}
