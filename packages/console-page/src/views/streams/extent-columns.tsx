/** Columns of lists of extents. */
import type { JSX } from "preact";
import { bytesText, countText } from "../../format.ts";
import type { ExtentRow } from "../../model.ts";
import { to } from "../../store.ts";
import { Badge, type Tone } from "../../ui.tsx";
import type { Column } from "../../virtual-table.tsx";
import { Replicas } from "./replicas.tsx";

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

export const extentColumns = (withStream: boolean): readonly Column<ExtentRow>[] => [
  { title: "Extent", width: "4rem", cell: ({ id }) => <a href={to("extents", id)}>{id}</a> },
  { title: "State", width: "6.5rem", cell: ({ state }) => <Badge tone={toneOfState[state] ?? "calm"}>{state}</Badge> },
  { title: "Sealed length", width: "7rem", cell: ({ sealedBytes }) => bytesText(sealedBytes), isNumber: true },
  { title: "Whole", width: "minmax(6rem, 1fr)", cell: intactText },
  {
    title: "Replicas, primary first, or fragments",
    width: "minmax(23.5rem, 3fr)",
    cell: (extent) => <Replicas extent={extent} />,
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
