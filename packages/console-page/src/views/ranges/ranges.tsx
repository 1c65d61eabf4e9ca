/** Range partitions: which server serves which keys, how much they are asked for over time, and what load balancing does about it. */
import type { JSX } from "preact";
import type { DataSource } from "../../data/data-model.ts";
import { bytesText, countText, rateText } from "../../format.ts";
import type { RangeRow, Snapshot, Source } from "../../model.ts";
import { ListState, useLoaded, usePages, usePolled } from "../../pages.tsx";
import { route, to } from "../../store.ts";
import { Card } from "../../ui.tsx";
import { type Column, VirtualTable } from "../../virtual-table.tsx";
import { Balance } from "./balance.tsx";
import { HeatMap } from "./heat-map.tsx";
import { OneRange } from "./one-range.tsx";
import { RangeState } from "./range-state.tsx";

const balanceEveryMs = 5_000;
const heatEveryMs = 10_000;

const columns: readonly Column<RangeRow>[] = [
  {
    title: "Range",
    width: "minmax(8rem, 1fr)",
    cell: ({ id }) => <a href={to("ranges", id)}>{id}</a>,
  },
  { title: "Table", width: "minmax(6rem, 1fr)", cell: ({ table }) => table },
  { title: "State", width: "8rem", cell: (range) => <RangeState range={range} /> },
  {
    title: "Server",
    width: "minmax(10rem, 1fr)",
    cell: ({ server }) => (server === "" ? "–" : <a href={to("processes", server)}>{server}</a>),
  },
  { title: "Reads", width: "5rem", cell: ({ readsPerSecond }) => rateText(readsPerSecond), isNumber: true },
  { title: "Writes", width: "5rem", cell: ({ writesPerSecond }) => rateText(writesPerSecond), isNumber: true },
  { title: "Refused", width: "5rem", cell: ({ throttledPerSecond }) => rateText(throttledPerSecond), isNumber: true },
  { title: "Rows", width: "6rem", cell: ({ rowBytes }) => bytesText(rowBytes), isNumber: true },
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

interface RangesProps {
  readonly now: Snapshot;
  readonly source: Source;
  readonly data: DataSource;
}

export function Ranges({ now, source, data }: RangesProps): JSX.Element {
  const { value: role } = useLoaded(source.role);
  const balance = usePolled(source.balance, balanceEveryMs);
  const [, id] = route.value;
  const servers = now.processes.filter(({ role: part, ready }) => part === "partition-server" && ready).map(({ name }) => name);
  if (id !== undefined) return <OneRange source={source} data={data} id={id} servers={servers} role={role} balance={balance} key={id} />;
  return (
    <>
      <HeatCard source={source} />
      <Balance asked={balance} />
      <AllRanges source={source} />
    </>
  );
}

function HeatCard({ source }: { readonly source: Source }): JSX.Element {
  const { value, problem } = usePolled(() => source.heat(""), heatEveryMs);
  return (
    <Card title="Load by keys over the last hour" wide>
      {problem === "" ? null : (
        <div class="notice bad" role="alert">
          {problem}
        </div>
      )}
      {value === undefined || value.bands.length === 0 ? (
        <p>{value === undefined ? "Asking the console…" : "No range was seen yet."}</p>
      ) : (
        <HeatMap heat={value} />
      )}
    </Card>
  );
}

function AllRanges({ source }: { readonly source: Source }): JSX.Element {
  const pages = usePages(source.ranges, "ranges");
  return (
    <ListState pages={pages} what="ranges" empty="The partition manager makes the first ranges. See the overview for what it waits for.">
      <VirtualTable label="Ranges" columns={columns} rows={pages.items} keyOf={({ id }) => id} onEnd={pages.more} />
    </ListState>
  );
}
