/** Extent nodes: their disks, repair and coding; to add, drain and remove one. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../../data/action.tsx";
import type { DataSource } from "../../data/data-model.ts";
import { bytesText, countText, msText, rateText } from "../../format.ts";
import type { NodeRow, Snapshot, Source } from "../../model.ts";
import { useLoaded } from "../../pages.tsx";
import { route, to } from "../../store.ts";
import { Badge, Bar, Card, Empty, type Heading, ScrollTable } from "../../ui.tsx";
import { dutyText, OneNode, toneOfNode } from "./one-node.tsx";

interface NodesProps {
  readonly now: Snapshot;
  readonly source: Source;
  readonly data: DataSource;
}

export function Nodes({ now, source, data }: NodesProps): JSX.Element {
  const { value: role } = useLoaded(source.role);
  const [told, setTold] = useState("");
  const name = route.value[1];
  const chosen = now.nodes.find((each) => each.name === name);
  const mayChange = role === "operate";
  return (
    <>
      {role === undefined || mayChange ? null : (
        <div class="notice">
          This session may not add, drain or remove nodes. A link to that: <code>./stamp console --role operate</code>
        </div>
      )}
      {told === "" ? null : (
        <div class="notice good" role="status">
          {told}
        </div>
      )}
      {chosen === undefined ? null : <OneNode node={chosen} data={data} mayChange={mayChange} onTold={setTold} key={chosen.name} />}
      {name !== undefined && chosen === undefined && now.nodes.length > 0 ? (
        <div class="notice bad" role="alert">
          There is no extent node <bdi>{name}</bdi>. <a href={to("nodes")}>See all nodes</a>
        </div>
      ) : null}
      {mayChange && name === undefined ? (
        <div class="buttons">
          <Action
            label="Add a node"
            title="Add an extent node?"
            submit="Add"
            run={async () => {
              const { node } = await data.change("add-node", {});
              setTold(`${String(node)} is added. It appears here when it reports to the stream manager.`);
            }}
          >
            <p>
              The supervisor of this machine starts one more extent node, with a folder beside the others, now and at every later start. New
              extents may be placed on it from then on; what is stored stays where it is.
            </p>
            <p>On another machine: name it in the topology of that host, and start it there.</p>
          </Action>
        </div>
      ) : null}
      <Table nodes={now.nodes} />
      <div class="columns">
        <Repair lines={now.repair} />
        <Coding source={source} />
      </div>
    </>
  );
}

const queueText = ({ disks }: NodeRow): string =>
  disks.length === 0 ? "–" : disks.map(({ inHand, waiting }) => `${countText(inHand)} + ${countText(waiting)}`).join(", ");

const headings: readonly Heading[] = [
  "Node",
  "State",
  "Domain",
  "Disk",
  ["Free", "number"],
  ["Files left", "number"],
  ["Replicas", "number"],
  ["Fragments", "number"],
  ["Appends", "number"],
  ["Sync, p99", "number"],
  ["Queue", "number"],
];

function Table({ nodes }: { readonly nodes: readonly NodeRow[] }): JSX.Element {
  if (nodes.length === 0) {
    return (
      <Empty title="No stream manager that leads answered">
        Disks and replicas are shown again when one does. <a href={to()}>The findings on the overview say what helps</a>
      </Empty>
    );
  }
  return (
    <Card title="Extent nodes" wide>
      <ScrollTable label="Extent nodes" headings={headings}>
        {nodes.map((node) => (
          <tr key={node.name}>
            <th scope="row">
              <a href={to("nodes", node.name)}>{node.name}</a>
            </th>
            <td>
              <Badge tone={toneOfNode(node)}>{dutyText(node)}</Badge>
            </td>
            <td class="short">{node.faultDomain === "" ? "–" : node.faultDomain}</td>
            <td>
              <Bar part={node.totalBytes === 0 ? 0 : 1 - node.freeBytes / node.totalBytes} label={`Disk of ${node.name}, used part`} />
            </td>
            <td class="number">{bytesText(node.freeBytes)}</td>
            <td class="number">{node.freeFiles === null ? "–" : countText(node.freeFiles)}</td>
            <td class="number">{countText(node.replicas)}</td>
            <td class="number">{node.fragments === null ? "–" : countText(node.fragments)}</td>
            <td class="number">{rateText(node.appendsPerSecond)}</td>
            <td class="number">{msText(node.syncP99Ms)}</td>
            <td class="number">{queueText(node)}</td>
          </tr>
        ))}
      </ScrollTable>
    </Card>
  );
}

const Repair = ({ lines }: { readonly lines: readonly string[] }): JSX.Element => (
  <Card title="Repair">
    {lines.length === 0 ? (
      <Empty title="No stream manager that leads answered">Whether replicas wait to be made again is not known.</Empty>
    ) : (
      <Lines of={lines} />
    )}
  </Card>
);

function Coding({ source }: { readonly source: Source }): JSX.Element {
  const [round, setRound] = useState(0);
  const { value, problem } = useLoaded(source.coding, round);
  return (
    <Card
      title="Erasure coding"
      aside={
        <button type="button" onClick={() => setRound(round + 1)}>
          Load again
        </button>
      }
    >
      {problem === undefined ? null : (
        <div class="notice bad" role="alert">
          {problem}
        </div>
      )}
      {value === undefined ? problem === undefined ? <p>Asking the stream manager…</p> : null : <Lines of={value} />}
    </Card>
  );
}

const Lines = ({ of }: { readonly of: readonly string[] }): JSX.Element => (
  <ul class="lines">
    {of
      .filter((line) => line.trim() !== "")
      .map((line, index) => (
        <li key={index}>{line}</li>
      ))}
  </ul>
);
