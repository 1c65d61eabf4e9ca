/** Range partitions: which server serves which keys, and how much they are asked for. */
import type { JSX } from "preact";
import { countText, rateText } from "../format.ts";
import type { RangeRow, Source } from "../model.ts";
import { ListState, usePages } from "../pages.tsx";
import { to } from "../store.ts";
import { Badge } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";

function stateOf({ server, loaded, change }: RangeRow): JSX.Element {
  if (change !== "") return <Badge tone="warn">{change}</Badge>;
  if (server === "") return <Badge tone="bad">unassigned</Badge>;
  return loaded ? <Badge tone="good">served</Badge> : <Badge tone="warn">loading</Badge>;
}

const columns: readonly Column<RangeRow>[] = [
  { title: "Range", width: "minmax(8rem, 1fr)", cell: ({ id }) => <strong>{id}</strong> },
  { title: "Table", width: "minmax(6rem, 1fr)", cell: ({ table }) => table },
  { title: "State", width: "8rem", cell: stateOf },
  {
    title: "Server",
    width: "minmax(10rem, 1fr)",
    cell: ({ server }) => (server === "" ? "–" : <a href={to("processes", server)}>{server}</a>),
  },
  { title: "Reads", width: "5rem", cell: ({ readsPerSecond }) => rateText(readsPerSecond), isNumber: true },
  { title: "Writes", width: "5rem", cell: ({ writesPerSecond }) => rateText(writesPerSecond), isNumber: true },
  {
    title: "Keys",
    width: "minmax(12rem, 3fr)",
    cell: ({ lowKey, highKey }) => (
      <span title={`${lowKey} … ${highKey}`}>
        <bdi>{lowKey === "" ? "start" : lowKey}</bdi> … <bdi>{highKey === "" ? "end" : highKey}</bdi>
      </span>
    ),
  },
  { title: "Owner epoch", width: "6.5rem", cell: ({ ownerEpoch }) => countText(ownerEpoch), isNumber: true },
];

export function Ranges({ source }: { readonly source: Source }): JSX.Element {
  const pages = usePages(source.ranges, "ranges");
  return (
    <ListState pages={pages} what="ranges" empty="The partition manager makes the first ranges. See the overview for what it waits for.">
      <VirtualTable label="Ranges" columns={columns} rows={pages.items} keyOf={({ id }) => id} onEnd={pages.more} />
    </ListState>
  );
}
