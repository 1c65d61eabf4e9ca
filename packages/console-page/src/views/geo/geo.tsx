/** Several stamps: where they are, copies of accounts and how far they are behind, failovers and what they would lose. */
import type { JSX } from "preact";
import { Chart, type Line } from "../../chart.tsx";
import type { DataSource } from "../../data/data-model.ts";
import { bytesText, countText, spanText } from "../../format.ts";
import type { CopyRow, Geo, Source, StampRow } from "../../model.ts";
import { useLoaded, usePolled } from "../../pages.tsx";
import { route, to } from "../../store.ts";
import { Badge, Bar, Card, CommandLine, Empty, ScrollTable, type Tone } from "../../ui.tsx";
import { OneCopy } from "./one-copy.tsx";

interface GeoProps {
  readonly source: Source;
  readonly data: DataSource;
}

const askEveryMs = 5_000;
const pointsMax = 720;
/** Charts that the list shows. */
const chartsMax = 6;

interface LagPoint {
  readonly atMs: number;
  readonly lagSeconds: number | null;
}

/** Lag of each account since the view was opened first, also while another view is shown between. */
const lags = new Map<string, readonly LagPoint[]>();

function took({ copies }: Geo): void {
  const atMs = Date.now();
  const names = new Set(copies.map(({ name }) => name));
  for (const name of lags.keys()) if (!names.has(name)) lags.delete(name);
  for (const { name, lagSeconds } of copies) lags.set(name, [...(lags.get(name) ?? []), { atMs, lagSeconds }].slice(-pointsMax));
}

export function GeoView({ source, data }: GeoProps): JSX.Element {
  const { value: role } = useLoaded(source.role);
  const { value: geo, problem, askNow } = usePolled(source.geo, askEveryMs, took);
  if (geo === undefined && problem === "") return <Empty title="Asking the location service…" />;
  if (geo?.at === "") return <Alone />;
  const name = route.value[1];
  const chosen = geo?.copies.find((each) => each.name === name);
  return (
    <>
      {problem === "" ? null : (
        <div class="notice bad" role="alert">
          {problem}. The location service is asked again every {spanText(askEveryMs)}.
        </div>
      )}
      {role === undefined || role === "operate" ? null : (
        <div class="notice">
          This session may not begin a failover. A link to that: <code>./stamp console --role operate</code>
        </div>
      )}
      {geo === undefined ? null : (
        <>
          {chosen === undefined ? null : (
            <OneCopy
              copy={chosen}
              source={source}
              data={data}
              mayChange={role === "operate"}
              mayRead={role === "data" || role === "operate"}
              chart={<Lag name={chosen.name} />}
              onChange={askNow}
              key={chosen.name}
            />
          )}
          {name !== undefined && chosen === undefined ? (
            <div class="notice bad" role="alert">
              <bdi>{name}</bdi> has no second stamp, and no operation is under way. <a href={to("geo")}>See all copies</a>
            </div>
          ) : null}
          <Copies geo={geo} withCharts={name === undefined} />
          <Stamps stamps={geo.stamps} />
        </>
      )}
    </>
  );
}

const Alone = (): JSX.Element => (
  <Empty title="This stamp is alone, as far as the console knows">
    <span>Copies of accounts need a second stamp and a location service. To try them out, on this machine:</span>
    <CommandLine text="./stamp up -d --stamps 2 --data .two" />
    <span>The stamp is one of several already? Start the console with the address of their location service:</span>
    <CommandLine text="./stamp console --at HOST:PORT --secret-file FILE" />
  </Empty>
);

const lines: readonly Line<LagPoint>[] = [{ label: "behind", of: ({ lagSeconds }) => lagSeconds, colour: "two" }];
const secondsText = (seconds: number | null): string => (seconds === null ? "–" : `${countText(seconds)} s`);

function Lag({ name }: { readonly name: string }): JSX.Element {
  const points = lags.get(name) ?? [];
  const spanMs = (points.at(-1)?.atMs ?? 0) - (points[0]?.atMs ?? 0);
  return <Chart title={`Lag of ${name}, since this page was opened`} points={points} spanMs={spanMs} lines={lines} text={secondsText} />;
}

function toneOf({ trouble, isSeeded, step }: CopyRow): Tone {
  if (trouble !== "") return "bad";
  return step !== "" ? "calm" : isSeeded ? "good" : "warn";
}

function Copies({ geo: { copies, more }, withCharts }: { readonly geo: Geo; readonly withCharts: boolean }): JSX.Element {
  if (copies.length === 0) {
    return (
      <Card title="Copies" wide>
        <Empty title="No account has a second stamp">
          <CommandLine text="./stamp geo protect ACCOUNT --location LOCATION" />
        </Empty>
      </Card>
    );
  }
  const charted = copies.filter(({ secondary }) => secondary !== "").slice(0, chartsMax);
  return (
    <Card title="Copies" wide aside={more ? <span>The first 5,000 accounts were looked at</span> : null}>
      <ScrollTable label="Copies" headings={["Account", "Primary", "Copy", "State", "Lag", "The copy lacks", "Step"]}>
        {copies.map((copy) => (
          <tr key={copy.name}>
            <th scope="row">
              <a href={to("geo", copy.name)}>{copy.name}</a>
            </th>
            <td>{copy.stamp}</td>
            <td>{copy.secondary === "" ? "–" : copy.secondary}</td>
            <td>
              <Badge tone={toneOf(copy)}>{copy.state}</Badge>
            </td>
            <td>{copy.lag}</td>
            <td>{copy.pending}</td>
            <td>{copy.step === "" ? "–" : copy.step}</td>
          </tr>
        ))}
      </ScrollTable>
      {withCharts ? (
        <div class="charts">
          {charted.map(({ name }) => (
            <Lag name={name} key={name} />
          ))}
        </div>
      ) : null}
    </Card>
  );
}

const Stamps = ({ stamps }: { readonly stamps: readonly StampRow[] }): JSX.Element => (
  <Card title="Stamps" wide>
    <ScrollTable label="Stamps" headings={["Stamp", "Location", "State", "Answers", "Disks", ["Accounts", "number"], "Trouble"]}>
      {stamps.map(({ name, location, state, answers, usedBytes, totalBytes, accounts, trouble }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td>{location}</td>
          <td>
            <Badge tone={state === "open" ? "good" : state === "lost" ? "bad" : "warn"}>{state}</Badge>
          </td>
          <td>
            <Badge tone={answers ? "good" : "bad"}>{answers ? "yes" : "no"}</Badge>
          </td>
          <td>
            {totalBytes === 0 ? (
              "not known"
            ) : (
              <>
                <Bar part={usedBytes / totalBytes} label={`Disks of ${name}, used part`} />
                <small>
                  {bytesText(usedBytes)} of {bytesText(totalBytes)}
                </small>
              </>
            )}
          </td>
          <td class="number">{countText(accounts)}</td>
          <td>{trouble === "" ? "–" : trouble}</td>
        </tr>
      ))}
    </ScrollTable>
  </Card>
);
