/** Overview: how the stamp is, what to do about it, and its figures of the last hour. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Chart, type Line } from "../chart.tsx";
import { byteRateText, bytesText, countText, msText, rateText } from "../format.ts";
import type { Finding, NodeRow, Point, Snapshot } from "../model.ts";
import { events, points, to } from "../store.ts";
import { Badge, Bar, Card, CommandLine, Empty, Figure, ScrollTable, type Tone, toneOf } from "../ui.tsx";
import { EventList } from "./events.tsx";

const toneOfSeverity: Readonly<Record<Finding["severity"], Tone>> = { critical: "bad", warning: "warn", note: "calm" };

const requestLines: readonly Line<Point>[] = [
  { label: "requests", of: (point) => point.requestsPerSecond, colour: "one" },
  { label: "server errors", of: (point) => point.errorsPerSecond, colour: "bad" },
];
const latencyLines: readonly Line<Point>[] = [
  { label: "p99", of: (point) => point.p99Ms, colour: "two" },
  { label: "p50", of: (point) => point.p50Ms, colour: "one" },
];
const byteLines: readonly Line<Point>[] = [
  { label: "written", of: (point) => point.writtenPerSecond, colour: "one" },
  { label: "read", of: (point) => point.readPerSecond, colour: "two" },
];

/** Powers of two, from 1 byte. */
const byteSteps = Array.from({ length: 45 }, (_, power) => 2 ** power);

export function Overview({ now }: { readonly now: Snapshot }): JSX.Element {
  return (
    <>
      <Health now={now} />
      <Findings now={now} />
      <Figures now={now} />
      <Charts />
      <div class="columns">
        <Latencies now={now} />
        <Card title="Last events" aside={<a href={to("events")}>All events</a>}>
          <EventList events={events.value.slice(-8).toReversed()} />
        </Card>
      </div>
    </>
  );
}

const titleOf = {
  healthy: "Healthy",
  degraded: "Needs attention",
  unknown: "Not known",
  danger: "In danger",
  stopped: "Not serving everything",
  absent: "No stamp",
};

const Health = ({ now }: { readonly now: Snapshot }): JSX.Element => (
  <section class={`health ${toneOf[now.state]}`} aria-live="polite">
    <h2>{titleOf[now.state]}</h2>
    <p>{now.sentence.replace(/^[^:]+: /, "")}</p>
  </section>
);

function Findings({ now }: { readonly now: Snapshot }): JSX.Element | null {
  if (now.findings.length === 0) return null;
  return (
    <Card title={`Findings (${now.findings.length})`} wide>
      <ul class="findings">
        {now.findings.map(({ severity, code, subject, cause, help }) => (
          <li key={`${code} ${subject}`}>
            <div>
              <Badge tone={toneOfSeverity[severity]}>{severity}</Badge> <strong>{subject === "" ? "stamp" : subject}</strong>
              <span>{cause}</span>
              <small>{code}</small>
            </div>
            <CommandLine text={help} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

const leastFree = (nodes: readonly NodeRow[]): NodeRow | undefined =>
  nodes
    .filter(({ totalBytes }) => totalBytes > 0)
    .toSorted((one, other) => one.freeBytes / one.totalBytes - other.freeBytes / other.totalBytes)[0];

function Figures({ now }: { readonly now: Snapshot }): JSX.Element {
  const { figures, processes, nodes } = now;
  const node = leastFree(nodes);
  const ready = processes.filter((each) => each.ready).length;
  return (
    <div class="figures">
      <Figure label="Requests" value={rateText(figures.requestsPerSecond)} note={`${rateText(figures.errorsPerSecond)} server errors`} />
      <Figure label="Latency, p99" value={msText(figures.p99Ms)} note="slowest kind of request, last minute" />
      <Figure label="Written" value={byteRateText(figures.writtenPerSecond)} note="into partition servers" />
      <Figure label="Processes" value={`${ready} of ${processes.length}`} note="ready" />
      <div class="figure">
        <span class="label">Free on the fullest disk</span>
        <span class="value">{node === undefined ? "–" : bytesText(node.freeBytes)}</span>
        {node === undefined ? null : <Bar part={1 - node.freeBytes / node.totalBytes} label={`Disk of ${node.name}, used part`} />}
        <span class="note">{node === undefined ? "no node was told" : `${node.name}, of ${bytesText(node.totalBytes)}`}</span>
      </div>
    </div>
  );
}

const spans = [
  { label: "5 min", ms: 5 * 60_000 },
  { label: "15 min", ms: 15 * 60_000 },
  { label: "1 h", ms: 60 * 60_000 },
];

function Charts(): JSX.Element {
  const span = useSignal(5 * 60_000);
  const last = points.value.at(-1)?.atMs ?? 0;
  const shown = points.value.filter(({ atMs }) => atMs > last - span.value);
  return (
    <Card
      title="Figures"
      wide
      aside={
        <fieldset class="choice">
          <legend class="hidden">Time shown</legend>
          {spans.map(({ label, ms }) => (
            <button type="button" key={label} aria-pressed={span.value === ms} onClick={() => (span.value = ms)}>
              {label}
            </button>
          ))}
        </fieldset>
      }
    >
      <div class="charts">
        <Chart title="Requests" points={shown} spanMs={span.value} lines={requestLines} text={rateText} />
        <Chart title="Latency, slowest kind" points={shown} spanMs={span.value} lines={latencyLines} text={msText} />
        <Chart
          title="Bytes, partition servers"
          points={shown}
          spanMs={span.value}
          lines={byteLines}
          text={byteRateText}
          steps={byteSteps}
        />
      </div>
    </Card>
  );
}

function Latencies({ now }: { readonly now: Snapshot }): JSX.Element {
  const rows = now.latency.slice(0, 8);
  return (
    <Card title="Slowest work">
      {rows.length === 0 ? (
        <Empty title="Nothing was measured of late">Requests of the last minute appear here. Send one with any Azure SDK.</Empty>
      ) : (
        <ScrollTable label="Slowest work" headings={["Process", "Work", ["Count", "number"], ["p50", "number"], ["p99", "number"]]}>
          {rows.map(({ process, what, count, p50Ms, p99Ms }) => (
            <tr key={`${process} ${what}`}>
              <td>
                <a href={to("processes", process)}>{process}</a>
              </td>
              <td>{what}</td>
              <td class="number">{countText(count)}</td>
              <td class="number">{msText(p50Ms)}</td>
              <td class="number">{msText(p99Ms)}</td>
            </tr>
          ))}
        </ScrollTable>
      )}
    </Card>
  );
}
