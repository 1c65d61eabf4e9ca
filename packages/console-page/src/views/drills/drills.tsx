/** Drills: one is picked and run on this stamp; its timeline grows beside the latency of its clients. And fault rules of the front-ends. */
import type { JSX } from "preact";
import { Chart, type Line } from "../../chart.tsx";
import { Action } from "../../data/action.tsx";
import type { DataSource } from "../../data/data-model.ts";
import { msText, rateText } from "../../format.ts";
import type { DrillRun, Drills, Source } from "../../model.ts";
import { useLoaded, usePolled } from "../../pages.tsx";
import { Badge, Card, Empty, ScrollTable, Time, type Tone } from "../../ui.tsx";
import { FaultRules } from "./fault-rules.tsx";

interface DrillsProps {
  readonly source: Source;
  readonly data: DataSource;
}

const askEveryMs = 1_000;

export function DrillsView({ source, data }: DrillsProps): JSX.Element {
  const { value: role } = useLoaded(source.role);
  const { value: drills, problem, askNow } = usePolled(source.drills, askEveryMs);
  const mayChange = role === "operate" && drills?.whyNot === "";
  return (
    <>
      {role === undefined || role === "operate" ? null : (
        <div class="notice">
          This session may not break anything. A link to that: <code>./stamp console --role operate</code>
        </div>
      )}
      {problem === "" ? null : (
        <div class="notice bad" role="alert">
          {problem}. It is asked again every second.
        </div>
      )}
      {drills === undefined ? problem === "" ? <Empty title="Asking for the drills…" /> : null : null}
      {drills !== undefined && drills.whyNot !== "" && drills.run?.isOver !== false ? (
        <Empty title="Drills are off">{drills.whyNot}</Empty>
      ) : null}
      {drills?.run == null ? null : <Run run={drills.run} />}
      {drills === undefined ? null : <List drills={drills} data={data} mayChange={mayChange} onStart={askNow} />}
      {drills?.whyNot === "" ? <FaultRules source={source} data={data} mayChange={mayChange} /> : null}
    </>
  );
}

interface ListProps {
  readonly drills: Drills;
  readonly data: DataSource;
  readonly mayChange: boolean;
  readonly onStart: () => void;
}

function List({ drills: { drills, run }, data, mayChange, onStart }: ListProps): JSX.Element {
  const isFree = run === null || run.isOver;
  return (
    <Card title="All drills" wide aside={isFree ? null : <span>One runs at a time</span>}>
      <ScrollTable
        label="All drills"
        headings={["Drill", "It does this", ["Writes held up, aim", "number"], ...(mayChange ? ["Run it"] : [])]}
      >
        {drills.map(({ name, about, aimMs }) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{about}</td>
            <td class="number">{msText(aimMs)}</td>
            {mayChange ? (
              <td>
                {isFree ? (
                  <Action
                    label="Run"
                    name={`Run ${name}`}
                    title={`Run ${name} on this stamp?`}
                    submit="Run it"
                    isFinal
                    run={() => data.change("start-drill", { drill: name }).then(onStart)}
                  >
                    <p>{about}.</p>
                    <p>
                      Clients of the drill write into a container of its own and check every answer; your programs meet the fault, too. The
                      drill goes on to its end and mends what it broke, also if this page is closed. Steps and judgement:{" "}
                      <code>./stamp drill explain {name}</code>
                    </p>
                  </Action>
                ) : null}
              </td>
            ) : null}
          </tr>
        ))}
      </ScrollTable>
    </Card>
  );
}

const toneOf: Readonly<Record<string, Tone>> = { kept: "good", slow: "warn", broken: "bad", failed: "bad" };

type Writes = DrillRun["writes"][number];

const latencyLines: readonly Line<Writes>[] = [{ label: "longest", of: ({ longestMs }) => longestMs, colour: "two" }];
const countLines: readonly Line<Writes>[] = [{ label: "acknowledged", of: ({ count }) => count, colour: "one" }];

function Run({ run }: { readonly run: DrillRun }): JSX.Element {
  const { drill, startedMs, isOver, entries, writes, verdict, conclusion, broken } = run;
  const spanMs = writes.length === 0 ? 60_000 : (writes.at(-1)?.atMs ?? 0) - (writes[0]?.atMs ?? 0);
  return (
    <Card
      title={drill}
      wide
      aside={
        <span>
          {isOver ? <Badge tone={toneOf[verdict] ?? "calm"}>{verdict}</Badge> : <Badge tone="calm">runs</Badge>} begun{" "}
          <Time atMs={startedMs} />
        </span>
      }
    >
      {isOver ? (
        <div class={`notice ${verdict === "kept" ? "good" : verdict === "slow" ? "" : "bad"}`} role="status">
          {conclusion}
          {broken.length === 0 ? null : (
            <ul class="lines">
              {broken.map((each, index) => (
                <li key={index}>{each}</li>
              ))}
            </ul>
          )}
        </div>
      ) : null}
      <div class="columns">
        <section aria-label="Timeline">
          <h3>Timeline, from the first fault</h3>
          {entries.length === 0 ? (
            <p>Clients begin to write. The first fault comes after some seconds.</p>
          ) : (
            <ol class="events timeline" tabIndex={0} aria-live="polite">
              {entries.map(({ atMs, what }, index) => (
                <li key={index} class={/^kill|damaged|is down|BROKEN/.test(what) ? "bad" : /complete|ready|is up/.test(what) ? "good" : ""}>
                  <span>{atMs === null ? "before" : `${(atMs / 1_000).toFixed(2)} s`}</span>
                  <span>{what}</span>
                </li>
              ))}
            </ol>
          )}
        </section>
        <section aria-label="Clients">
          {writes.length === 0 ? (
            <p>The latency of the clients appears here.</p>
          ) : (
            <>
              <Chart title="Longest write, each second" points={writes} spanMs={spanMs} lines={latencyLines} text={msText} />
              <Chart title="Writes" points={writes} spanMs={spanMs} lines={countLines} text={rateText} />
            </>
          )}
        </section>
      </div>
    </Card>
  );
}
