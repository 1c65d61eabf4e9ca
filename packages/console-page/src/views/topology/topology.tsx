/** The stamp drawn: hosts, processes by layer, who leads, who waits for whom, and the work on its way. The table below says the same in words. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { rateText, spanText } from "../../format.ts";
import type { ProcessRow, Snapshot } from "../../model.ts";
import { events, to } from "../../store.ts";
import { Badge, Card, Empty, ScrollTable, type Tone } from "../../ui.tsx";
import { type Box, boxHeight, boxWidth, type Line, layoutOf } from "./layout.ts";

/** Time for which the end of a process is marked, in milliseconds. */
const endedMarkMs = 15_000;

export function Topology({ now }: { readonly now: Snapshot }): JSX.Element {
  const ended = endsOf(now);
  if (now.processes.length === 0) return <Empty title="No process is known">The overview says why.</Empty>;
  return (
    <>
      <div aria-live="polite" class="ends">
        {[...ended].map(([name, agoMs]) => (
          <div class="notice bad" key={name}>
            <bdi>{name}</bdi> ended {spanText(agoMs)} ago.
          </div>
        ))}
      </div>
      <Picture processes={now.processes} ended={ended} />
      <Words processes={now.processes} ended={ended} />
    </>
  );
}

/** Processes whose end is some seconds old, with the time since. */
function endsOf({ atMs, processes }: Snapshot): ReadonlyMap<string, number> {
  const names = new Set(processes.map(({ name }) => name));
  const recent = events.value.filter((each) => atMs - each.atMs < endedMarkMs && names.has(each.subject) && each.text.startsWith("ended"));
  return new Map(recent.map((each) => [each.subject, Math.max(atMs - each.atMs, 0)]));
}

interface PartProps {
  readonly processes: readonly ProcessRow[];
  readonly ended: ReadonlyMap<string, number>;
}

function Picture({ processes, ended }: PartProps): JSX.Element {
  const holder = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const parent = holder.current;
    if (parent === null) return;
    const sized = new ResizeObserver(() => setWidth(parent.clientWidth));
    sized.observe(parent);
    return () => sized.disconnect();
  }, []);
  const { boxes, frames, lines, clients, height } = layoutOf(processes, Math.max(width, boxWidth + 40));
  return (
    <div ref={holder} class="topology">
      {width === 0 ? null : (
        <svg width={width} height={height} aria-hidden="true">
          {frames.map(({ host, x, y, width: wide, height: high }) => (
            <g key={host}>
              <rect class="host" x={x} y={y} width={wide} height={high} rx={12} />
              {host === "" ? null : (
                <foreignObject x={x + 12} y={y + 6} width={wide - 24} height={22}>
                  <strong class="cut">{host}</strong>
                </foreignObject>
              )}
            </g>
          ))}
          {lines.map((line) => (
            <Wire line={line} key={line.key} />
          ))}
          <text class="clients" x={clients[0]} y={clients[1]} text-anchor="middle">
            clients
          </text>
          {boxes.map((box) => (
            <ProcessBox box={box} isEnded={ended.has(box.process.name)} key={box.process.name} />
          ))}
        </svg>
      )}
    </div>
  );
}

/** Lines of more work are wider: by one pixel for each ten times. */
function Wire({ line: { from, to: end, perSecond, isCut, isWait } }: { readonly line: Line }): JSX.Element {
  const middle = (from[1] + end[1]) / 2;
  const kind = isWait ? "wait" : isCut ? "broken" : perSecond === null || perSecond < 0.05 ? "" : "busy";
  return (
    <path
      class={`wire ${kind}`}
      d={`M${from[0]} ${from[1]} C${from[0]} ${middle} ${end[0]} ${middle} ${end[0]} ${end[1]}`}
      stroke-width={1 + Math.min(Math.log10(1 + (perSecond ?? 0)), 5)}
    />
  );
}

const toneOf = ({ ready, state }: ProcessRow): Tone => (ready ? "good" : /starting|stopping|loading|unknown/.test(state) ? "warn" : "bad");

/** True for the manager that leads, and for the lock service that serves while others stand by. */
const leads = ({ role, state }: ProcessRow): boolean => state === "leader" || (role === "lock-service" && state === "serving");

function ProcessBox({ box: { process, x, y }, isEnded }: { readonly box: Box; readonly isEnded: boolean }): JSX.Element {
  const { name, workPerSecond } = process;
  const tone = isEnded ? "bad" : toneOf(process);
  return (
    <foreignObject x={x} y={y} width={boxWidth} height={boxHeight}>
      <a href={to("processes", name)} class={`process ${tone}`} tabIndex={-1}>
        <strong class="cut">{name}</strong>
        <small class="cut">
          {leads(process) ? "★ leads" : process.state}
          {workPerSecond === null ? "" : ` · ${rateText(workPerSecond)}`}
        </small>
      </a>
    </foreignObject>
  );
}

const workWords: Readonly<Record<string, string>> = { "front-end": "requests", "partition-server": "operations", "extent-node": "appends" };

const Words = ({ processes, ended }: PartProps): JSX.Element => (
  <Card title="In words" wide>
    <ScrollTable label="Processes in words" headings={["Process", "Host", "State", "Waits for", ["Takes on", "number"]]}>
      {processes.map((each) => (
        <tr key={each.name}>
          <th scope="row">
            <a href={to("processes", each.name)}>{each.name}</a>
          </th>
          <td>{each.host === "" ? "–" : each.host}</td>
          <td>
            <Badge tone={toneOf(each)}>{leads(each) ? `${each.state}, leads` : each.state}</Badge>
            {ended.has(each.name) ? ` ended ${spanText(ended.get(each.name) ?? 0)} ago` : ""}
          </td>
          <td>{each.waitingFor.length === 0 ? "nothing" : each.waitingFor.join(", ")}</td>
          <td class="number">{each.workPerSecond === null ? "–" : `${rateText(each.workPerSecond)} ${workWords[each.role] ?? ""}`}</td>
        </tr>
      ))}
    </ScrollTable>
  </Card>
);
