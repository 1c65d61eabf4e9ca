/** One account at two stamps: how far its copy is, failovers, and what a deposed primary had that the copy lacked. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../../data/action.tsx";
import type { Change, DataSource } from "../../data/data-model.ts";
import type { CopyRow, DivergedReport, Source } from "../../model.ts";
import { useLoaded } from "../../pages.tsx";
import { to } from "../../store.ts";
import { Badge, Card, Empty, ScrollTable } from "../../ui.tsx";

interface OneCopyProps {
  readonly copy: CopyRow;
  readonly source: Source;
  readonly data: DataSource;
  readonly mayChange: boolean;
  /** True if the session may see names of what is stored. */
  readonly mayRead: boolean;
  readonly chart: JSX.Element;
  readonly onChange: () => void;
}

export function OneCopy({ copy, source, data, mayChange, mayRead, chart, onChange }: OneCopyProps): JSX.Element {
  const { name, stamp, secondary, state, isSeeded, queues, lag, pending, step, trouble } = copy;
  const facts: readonly (readonly [string, string])[] = [
    ["Primary", stamp],
    ["Copy", secondary === "" ? "none" : secondary],
    ["The copy is complete", isSeeded ? "yes" : "no"],
    ["Queues", queues ? "copied" : "not copied"],
    ["Lag", lag],
    ["The copy lacks", pending],
    ["Operation under way", step === "" ? "none" : step],
  ];
  return (
    <Card title={name} wide aside={<a href={to("geo")}>Close</a>}>
      <p>
        <Badge tone="calm">{state}</Badge>
      </p>
      {/* Stamps that have changed places end a dialog, and what was accepted in it for the other direction. */}
      {mayChange ? <Failovers key={`${stamp} ${secondary}`} copy={copy} data={data} onChange={onChange} /> : null}
      {trouble === "" ? null : (
        <div class="notice bad" role="alert">
          {trouble}
        </div>
      )}
      <dl class="facts">
        {facts.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {secondary === "" ? null : <div class="charts">{chart}</div>}
      {mayRead ? <Diverged source={source} account={name} /> : null}
    </Card>
  );
}

function Failovers({ copy, data, onChange }: Pick<OneCopyProps, "copy" | "data" | "onChange">): JSX.Element {
  const { name, stamp, secondary, step, loss } = copy;
  const [isAccepted, setAccepted] = useState(false);
  const change = (what: Change, fields: Readonly<Record<string, unknown>>): Promise<void> =>
    data.change(what, { account: name, ...fields }).then(onChange);
  return (
    <div class="buttons">
      {secondary === "" ? null : (
        <>
          <Action
            label="Planned failover"
            title={`Make ${secondary} the primary of ${name}?`}
            submit="Fail over"
            run={() => change("fail-over", { forced: false, to: secondary })}
          >
            <p>
              Nothing is lost: writes are refused while {stamp} ships the rest, then {secondary} takes them. {stamp} has the copy
              afterwards. Programs need the address of {secondary}, or a name that moves with the account.
            </p>
          </Action>
          <Action
            label="Forced failover"
            title={`Make ${secondary} the primary of ${name} at once?`}
            submit="Fail over, and lose that"
            isFinal
            onOpen={() => setAccepted(false)}
            run={() => change("fail-over", { forced: true, acceptLoss: isAccepted, to: secondary })}
          >
            <p>Only if {stamp} is lost: what it has not shipped is lost.</p>
            <p class="notice bad">{loss}.</p>
            <p>If {stamp} comes back, it is fenced, and reports what only it had: it is shown below then.</p>
            <label>
              <input type="checkbox" required checked={isAccepted} onChange={({ currentTarget }) => setAccepted(currentTarget.checked)} /> I
              accept that these writes may be lost
            </label>
          </Action>
        </>
      )}
      {step === "" ? null : (
        <Action label="Give up" title={`Take the operation on ${name} back?`} submit="Take it back" run={() => change("give-up", { step })}>
          <p>It is: {step}. It can be taken back as long as no other stamp was promoted; the location service refuses it afterwards.</p>
        </Action>
      )}
    </div>
  );
}

const headings = ["Failover", "Row", "Table, container or queue", "Blob or partition key", "Row key", "Written"];

function Diverged({ source, account }: { readonly source: Source; readonly account: string }): JSX.Element {
  const [round, setRound] = useState(0);
  const { value: reports, problem } = useLoaded(() => source.diverged(account), round);
  return (
    <section class="queue" aria-label="Diverged rows">
      <div class="bar">
        <h3>Rows that only a deposed primary had</h3>
        <button type="button" onClick={() => setRound(round + 1)}>
          Load again
        </button>
      </div>
      {problem === undefined ? null : (
        <div class="notice bad" role="alert">
          {problem}
        </div>
      )}
      {reports === undefined ? null : reports.length === 0 ? (
        <Empty title="No stamp has reported any">A stamp that a forced failover deposed reports them when it is back.</Empty>
      ) : (
        reports.map((report) => <Report report={report} account={account} key={report.stamp} />)
      )}
    </section>
  );
}

const Report = ({
  report: { stamp, trouble, rows, more },
  account,
}: {
  readonly report: DivergedReport;
  readonly account: string;
}): JSX.Element => (
  <>
    <p>
      <strong>{stamp}</strong>
      {trouble === "" ? "" : `: the report is not complete: ${trouble}`}
    </p>
    {rows.length === 0 ? (
      <p>No row is told yet.</p>
    ) : (
      <ScrollTable label={`Rows of ${stamp}`} headings={headings}>
        {rows.map((row, index) => (
          <tr key={index}>
            {row.map((text, at) => (
              <td class="short" key={at}>
                {text}
              </td>
            ))}
          </tr>
        ))}
      </ScrollTable>
    )}
    {more ? (
      <p>
        There are more rows: <code>./stamp geo diverged {account} --json</code>
      </p>
    ) : null}
  </>
);
