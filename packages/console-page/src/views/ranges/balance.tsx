/** Shows the plan of load balancing and the steps that it took, each with its reason. */
import type { JSX } from "preact";
import type { BalanceRow, BalanceRows } from "../../model.ts";
import type { Polled } from "../../pages.tsx";
import { to } from "../../store.ts";
import { Badge, Card, Empty, ScrollTable, Time } from "../../ui.tsx";

/** `range`: shows the steps of this range only. */
export function Balance({ asked, range }: { readonly asked: Polled<BalanceRows>; readonly range?: string }): JSX.Element {
  const { value, problem } = asked;
  const about = (rows: readonly BalanceRow[]): readonly BalanceRow[] =>
    range === undefined ? rows : rows.filter((row) => row.range === range);
  return (
    <>
      {problem === "" ? null : (
        <div class="notice bad" role="alert">
          {problem}. The partition manager is asked again every 5 s.
        </div>
      )}
      {value === undefined ? null : (
        <div class="columns">
          <Card title="What would be changed now">
            <Waits balance={value} />
            <Planned rows={about(value.planned)} />
          </Card>
          <Card title="What was changed">
            <Done rows={about(value.done)} />
          </Card>
        </div>
      )}
    </>
  );
}

function Waits({ balance: { isAutomatic, waitsFor } }: { readonly balance: BalanceRows }): JSX.Element | null {
  if (!isAutomatic) return <p class="notice">Nothing is done by itself: the stamp was started with "balance" set to false.</p>;
  if (waitsFor.length === 0) return null;
  return <p class="notice">Nothing is begun by itself now: {waitsFor.join("; ")}</p>;
}

const what = ({ kind, to: server }: BalanceRow): JSX.Element => (
  <>
    {kind}
    {server === "" ? null : (
      <>
        {" "}
        to <a href={to("processes", server)}>{server}</a>
      </>
    )}
  </>
);

function Planned({ rows }: { readonly rows: readonly BalanceRow[] }): JSX.Element {
  if (rows.length === 0)
    return <Empty title="Nothing">Load and size are even enough, or ranges are left alone for a while after a change.</Empty>;
  return (
    <ScrollTable label="Planned changes" headings={["Range", "Change", "Why"]}>
      {rows.map((row, index) => (
        <tr key={index}>
          <th scope="row">
            <a href={to("ranges", row.range)}>{row.range}</a>
          </th>
          <td>{what(row)}</td>
          <td>{row.why}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}

function Done({ rows }: { readonly rows: readonly BalanceRow[] }): JSX.Element {
  if (rows.length === 0) return <Empty title="Nothing yet">The partition manager that leads keeps the last 100 of its changes.</Empty>;
  return (
    <ScrollTable label="Changes that were made" headings={["When", "Range", "Change", "Why", "Result"]}>
      {rows.map((row, index) => (
        <tr key={index}>
          <td>{row.atMs === null ? "–" : <Time atMs={row.atMs} />}</td>
          <th scope="row">{row.range}</th>
          <td>{what(row)}</td>
          <td>{row.why}</td>
          <td>{row.failure === "" ? <Badge tone="good">done</Badge> : <Badge tone="bad">{row.failure}</Badge>}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}
