/** One range: its keys, server, load and size, its load over the last hour, and what load balancing does about it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chart } from "../../chart.tsx";
import type { DataSource } from "../../data/data-model.ts";
import { bytesText, countText, msText, rateText } from "../../format.ts";
import type { BalanceRows, HeatMap, RangeRow, Source } from "../../model.ts";
import { type Polled, usePolled } from "../../pages.tsx";
import { to } from "../../store.ts";
import { Card, Empty } from "../../ui.tsx";
import { Balance } from "./balance.tsx";
import { RangeChanges } from "./range-changes.tsx";
import { RangeState } from "./range-state.tsx";

const askEveryMs = 2_000;
const heatEveryMs = 15_000;
const hourMs = 3_600_000;

interface OneRangeProps {
  readonly source: Source;
  readonly data: DataSource;
  readonly id: string;
  readonly servers: readonly string[];
  /** Role of the session; undefined: not known yet. */
  readonly role: string | undefined;
  readonly balance: Polled<BalanceRows>;
}

export function OneRange({ source, data, id, servers, role, balance }: OneRangeProps): JSX.Element {
  const [told, setTold] = useState<{ readonly text: string; readonly ranges: readonly string[] }>();
  const { value, problem } = usePolled(() => source.range(id), askEveryMs);
  const { value: heat } = usePolled(() => source.heat(id), heatEveryMs);
  const range = value?.[0];
  return (
    <>
      <p class="path">
        <a href={to("ranges")}>Ranges</a> <span aria-hidden="true">›</span> <strong>{id}</strong>
      </p>
      {role === undefined || role === "operate" ? null : (
        <div class="notice">
          This session may not split, merge or move ranges. A link to that: <code>./stamp console --role operate</code>
        </div>
      )}
      {told === undefined ? null : (
        <div class="notice good" role="status">
          {told.text}{" "}
          {told.ranges.map((name) => (
            <span key={name}>
              <a href={to("ranges", name)}>{name}</a>{" "}
            </span>
          ))}
        </div>
      )}
      {problem === "" ? null : (
        <div class="notice bad" role="alert">
          {problem}
        </div>
      )}
      {value !== undefined && range === undefined ? (
        <Empty title="There is no range of this name now">
          It was split or merged, and its keys have other ranges. <a href={to("ranges")}>See all ranges</a>
        </Empty>
      ) : null}
      {range === undefined ? null : (
        <Card title={range.id} wide>
          <p>
            <RangeState range={range} />
          </p>
          {role === "operate" ? (
            <RangeChanges range={range} servers={servers} data={data} onTold={(text, ranges) => setTold({ text, ranges })} />
          ) : null}
          <Facts range={range} />
          {heat === undefined ? null : <Load heat={heat} />}
        </Card>
      )}
      <Balance asked={balance} range={id} />
    </>
  );
}

function Facts({ range }: { readonly range: RangeRow }): JSX.Element {
  const { table, server, lowKey, highKey, ownerEpoch, readsPerSecond, writesPerSecond, throttledPerSecond, latencyMs, pending, rowBytes } =
    range;
  const facts: readonly (readonly [string, JSX.Element | string])[] = [
    ["Table", table],
    ["Server", server === "" ? "none" : <a href={to("processes", server)}>{server}</a>],
    ["First key", <bdi key="low">{lowKey === "" ? "start of the table" : lowKey}</bdi>],
    ["First key behind", <bdi key="high">{highKey === "" ? "end of the table" : highKey}</bdi>],
    ["Reads", rateText(readsPerSecond)],
    ["Writes", rateText(writesPerSecond)],
    ["Refused for load", rateText(throttledPerSecond)],
    ["Latency, mean", msText(latencyMs)],
    ["In progress", pending === null ? "–" : countText(pending)],
    ["Rows, without blob data", bytesText(rowBytes)],
    ["Owner epoch", countText(ownerEpoch)],
  ];
  return (
    <dl class="facts">
      {facts.map(([term, value]) => (
        <div key={term}>
          <dt>{term}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Load({ heat: { columns, bands } }: { readonly heat: HeatMap }): JSX.Element {
  const points = columns.map((atMs, at) => ({ atMs, load: bands[0]?.loads[at] ?? null }));
  return (
    <Chart
      title="Requests of the last hour"
      points={points}
      spanMs={hourMs}
      lines={[{ label: "most in 30 s", of: ({ load }) => load, colour: "two" }]}
      text={rateText}
    />
  );
}
