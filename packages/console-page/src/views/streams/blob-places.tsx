/** Where the bytes of one blob are: extents, and the nodes that hold them. */
import type { JSX } from "preact";
import type { BlobPath, DataSource } from "../../data/data-model.ts";
import { bytesText, countText } from "../../format.ts";
import type { PieceRow } from "../../model.ts";
import { ListState, usePages } from "../../pages.tsx";
import { to } from "../../store.ts";
import { Card } from "../../ui.tsx";
import { type Column, VirtualTable } from "../../virtual-table.tsx";
import { Replicas } from "./replicas.tsx";

function whereText({ where, range, extentId }: PieceRow): JSX.Element {
  if (where === "extent") return <a href={to("extents", extentId)}>{`extent ${extentId}`}</a>;
  return where === "row" ? <a href={to("ranges")}>{`row in ${range}`}</a> : <span>nowhere: zeros</span>;
}

const columns: readonly Column<PieceRow>[] = [
  { title: "From byte", width: "minmax(6rem, 1fr)", cell: ({ startBytes }) => countText(startBytes), isNumber: true },
  { title: "Bytes", width: "7rem", cell: ({ bytes }) => bytesText(bytes), isNumber: true },
  { title: "In", width: "minmax(8rem, 1fr)", cell: whereText },
  { title: "State", width: "6.5rem", cell: ({ extent }) => extent?.state ?? "–" },
  {
    title: "Replicas, primary first, or fragments",
    width: "minmax(23.5rem, 3fr)",
    cell: ({ extent }) => (extent === null ? "–" : <Replicas extent={extent} />),
  },
];

interface BlobPlacesProps {
  readonly source: DataSource;
  readonly path: BlobPath;
  /** ETag of the blob as it is shown. */
  readonly etag: string;
}

export function BlobPlaces({ source, path, etag }: BlobPlacesProps): JSX.Element {
  const pages = usePages((after) => source.places(path, after), `${path.account} ${path.container} ${path.name} ${etag}`);
  return (
    <Card title="Where its bytes are" wide>
      <ListState pages={pages} what="pieces" empty="The blob is empty: it has no bytes.">
        <VirtualTable
          label="Where the bytes of the blob are"
          columns={columns}
          rows={pages.items}
          keyOf={({ startBytes }) => String(startBytes)}
          onEnd={pages.more}
        />
      </ListState>
    </Card>
  );
}
