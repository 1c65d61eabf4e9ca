/** Processes by layer, as requests pass through them. */
import type { JSX } from "preact";
import { countText, spanText } from "../format.ts";
import type { ProcessRow, Snapshot } from "../model.ts";
import { route, to } from "../store.ts";
import { Badge, Card, type Tone } from "../ui.tsx";

const layers = [
  { title: "Front-end", about: "speaks HTTP with clients", roles: ["front-end"] },
  { title: "Partition layer", about: "keeps order: object tables over streams", roles: ["partition-manager", "partition-server"] },
  { title: "Stream layer", about: "keeps bytes: extents and their replicas", roles: ["stream-manager", "extent-node"] },
  { title: "Lock service", about: "leases, epochs, metadata", roles: ["lock-service"] },
];

export function Processes({ now }: { readonly now: Snapshot }): JSX.Element {
  const chosen = now.processes.find(({ name }) => name === route.value[1]);
  const known = layers.flatMap(({ roles }) => roles);
  const others = now.processes.filter(({ role }) => !known.includes(role));
  return (
    <>
      {chosen === undefined ? null : <Process process={chosen} />}
      {route.value[1] !== undefined && chosen === undefined ? (
        <div class="notice bad" role="alert">
          There is no process {route.value[1]}. <a href={to("processes")}>See all processes</a>
        </div>
      ) : null}
      <div class="layers">
        {layers.map(({ title, about, roles }) => (
          <Layer
            key={title}
            title={title}
            about={about}
            processes={roles.flatMap((role) => now.processes.filter((each) => each.role === role))}
          />
        ))}
        {others.length === 0 ? null : <Layer title="Others" about="" processes={others} />}
      </div>
    </>
  );
}

const toneOf = ({ ready, state }: ProcessRow): Tone => (ready ? "good" : /starting|stopping|unknown/.test(state) ? "warn" : "bad");

const Layer = ({
  title,
  about,
  processes,
}: {
  readonly title: string;
  readonly about: string;
  readonly processes: readonly ProcessRow[];
}): JSX.Element => (
  <section class="layer">
    <header>
      <h2>{title}</h2>
      <p>{about}</p>
    </header>
    <ul>
      {processes.map((each) => (
        <li key={each.name}>
          <a href={to("processes", each.name)} class={`process ${toneOf(each)}`}>
            <strong>{each.name}</strong>
            <span>{each.state}</span>
            <small>
              {each.restarts > 0 ? `restarted ${each.restarts}× · ` : ""}
              {each.waitingFor.length > 0
                ? `waits for ${each.waitingFor.join(", ")}`
                : each.uptimeMs === null
                  ? each.lastExit
                  : `up ${spanText(each.uptimeMs)}`}
            </small>
          </a>
        </li>
      ))}
    </ul>
  </section>
);

function Process({ process }: { readonly process: ProcessRow }): JSX.Element {
  const { name, role, host, pid, grpc, state, waitingFor, restarts, lastExit, uptimeMs, release } = process;
  const facts: readonly (readonly [string, string])[] = [
    ["Role", role],
    ...(host === "" ? [] : ([["Host", host]] as const)),
    ["Process id", pid === null ? "–" : String(pid)],
    ["gRPC", grpc],
    ["Release", release === "" ? "–" : release],
    ["Up for", uptimeMs === null ? "–" : spanText(uptimeMs)],
    ["Waits for", waitingFor.length === 0 ? "nothing" : waitingFor.join(", ")],
    ["Restarts", countText(restarts)],
    ["Last end", lastExit === "" ? "none" : lastExit],
  ];
  return (
    <Card title={name} wide aside={<a href={to("processes")}>Close</a>}>
      <p>
        <Badge tone={toneOf(process)}>{state}</Badge>{" "}
        {role === "extent-node" ? <a href={to("nodes", name)}>Its disk, and to drain or remove it</a> : null}
      </p>
      <dl class="facts">
        {facts.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}
