/** Streams, their extents, and the nodes that hold the replicas or fragments of each. */
import type { JSX } from "preact";
import { countText } from "../../format.ts";
import type { Source, StreamRow } from "../../model.ts";
import { ListState, usePages } from "../../pages.tsx";
import { route, to } from "../../store.ts";
import { type Column, VirtualTable } from "../../virtual-table.tsx";
import { extentColumns } from "./extent-columns.tsx";
import { OneExtent } from "./one-extent.tsx";

export function Streams({ source }: { readonly source: Source }): JSX.Element {
  const [, name] = route.value;
  return name === undefined ? <AllStreams source={source} /> : <OneStream source={source} name={name} key={name} />;
}

const streamColumns: readonly Column<StreamRow>[] = [
  { title: "Stream", width: "minmax(14rem, 3fr)", cell: ({ name }) => <a href={to("streams", name)}>{name}</a> },
  { title: "Extents", width: "minmax(5rem, 1fr)", cell: ({ extentCount }) => countText(extentCount), isNumber: true },
  { title: "Owner epoch", width: "minmax(6rem, 1fr)", cell: ({ ownerEpoch }) => countText(ownerEpoch), isNumber: true },
];

function AllStreams({ source }: { readonly source: Source }): JSX.Element {
  const pages = usePages(source.streams, "streams");
  return (
    <ListState
      pages={pages}
      what="streams"
      empty="The partition layer makes streams when it starts. See the overview for what it waits for."
    >
      <VirtualTable label="Streams" columns={streamColumns} rows={pages.items} keyOf={({ name }) => name} onEnd={pages.more} />
    </ListState>
  );
}

function OneStream({ source, name }: { readonly source: Source; readonly name: string }): JSX.Element {
  const pages = usePages((after) => source.extentsOf(name, after), name);
  return (
    <>
      <p class="path">
        <a href={to("streams")}>Streams</a> <span aria-hidden="true">›</span> <strong>{name}</strong>
      </p>
      <ListState pages={pages} what="extents" empty="The stream has no extent yet: its owner makes the first one with the first append.">
        <VirtualTable
          label="Extents of the stream"
          columns={extentColumns(false)}
          rows={pages.items}
          keyOf={({ id }) => id}
          onEnd={pages.more}
        />
      </ListState>
    </>
  );
}

export function Extents({ source }: { readonly source: Source }): JSX.Element {
  const [, id, part] = route.value;
  return id === undefined ? <AllExtents source={source} /> : <OneExtent source={source} id={id} withBlobs={part === "blobs"} key={id} />;
}

function AllExtents({ source }: { readonly source: Source }): JSX.Element {
  const pages = usePages(source.extents, "extents");
  return (
    <ListState pages={pages} what="extents" empty="The first append to a stream makes one.">
      <VirtualTable label="Extents" columns={extentColumns(true)} rows={pages.items} keyOf={({ id }) => id} onEnd={pages.more} />
    </ListState>
  );
}
