/** Streams, their extents, and the nodes that hold the replicas or fragments of each. */
import type { JSX } from "preact";
import { bytesText, countText } from "../format.ts";
import type { ExtentRow, Source, StreamRow } from "../model.ts";
import { ListState, usePages } from "../pages.tsx";
import { route, to } from "../store.ts";
import { Badge, type Tone } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";

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

const toneOfState: Readonly<Record<string, Tone>> = { open: "calm", sealed: "good", sealing: "warn", allocating: "warn", dropped: "calm" };

function intactText({ state, intact, nodes, attempt }: ExtentRow): JSX.Element {
  if (state === "dropped") return <span>given back</span>;
  if (intact === null) return <span>{countText(nodes.length)}, not sealed</span>;
  const tone = intact >= nodes.length ? "good" : intact === 0 ? "bad" : "warn";
  return (
    <>
      <Badge tone={tone}>{`${intact} of ${nodes.length}`}</Badge> {attempt}
    </>
  );
}

const extentColumns = (withStream: boolean): readonly Column<ExtentRow>[] => [
  { title: "Extent", width: "4rem", cell: ({ id }) => id },
  { title: "State", width: "6.5rem", cell: ({ state }) => <Badge tone={toneOfState[state] ?? "calm"}>{state}</Badge> },
  { title: "Sealed length", width: "7rem", cell: ({ sealedBytes }) => bytesText(sealedBytes), isNumber: true },
  { title: "Whole", width: "minmax(6rem, 1fr)", cell: intactText },
  {
    title: "Replicas, primary first, or fragments",
    width: "minmax(23.5rem, 3fr)",
    cell: ({ nodes, coding }) => (
      <>
        {coding === "" ? null : <small>{coding} </small>}
        {nodes.map((node, index) => (
          <a key={`${index} ${node}`} class={coding === "" && index === 0 ? "chip primary" : "chip"} href={to("processes", node)}>
            {node}
          </a>
        ))}
      </>
    ),
  },
  { title: "Epoch", width: "4rem", cell: ({ ownerEpoch }) => countText(ownerEpoch), isNumber: true },
  ...(withStream
    ? [
        {
          title: "Stream",
          width: "minmax(11rem, 2fr)",
          cell: ({ stream }: ExtentRow) => (stream === "" ? "–" : <a href={to("streams", stream)}>{stream}</a>),
        },
      ]
    : []),
];

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
  const pages = usePages(source.extents, "extents");
  return (
    <ListState pages={pages} what="extents" empty="The first append to a stream makes one.">
      <VirtualTable label="Extents" columns={extentColumns(true)} rows={pages.items} keyOf={({ id }) => id} onEnd={pages.more} />
    </ListState>
  );
}
