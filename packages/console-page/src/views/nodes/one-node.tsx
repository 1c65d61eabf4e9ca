/** One extent node: its disks and their queues, scrubbing, and what a person may do with it. */
import type { JSX } from "preact";
import { Action } from "../../data/action.tsx";
import type { Change, DataSource } from "../../data/data-model.ts";
import { bytesText, countText, msText, rateText } from "../../format.ts";
import type { DiskRow, NodeRow } from "../../model.ts";
import { to } from "../../store.ts";
import { Badge, Card, Empty, ScrollTable, type Tone } from "../../ui.tsx";

export const toneOfNode = ({ up, duty }: NodeRow): Tone => (up ? (duty === "serving" ? "good" : "warn") : "bad");

/** State of a node in words. */
export const dutyText = ({ up, duty }: NodeRow): string => (up ? duty : duty === "serving" ? "down" : `down, ${duty}`);

interface OneNodeProps {
  readonly node: NodeRow;
  readonly data: DataSource;
  readonly mayChange: boolean;
  /** Takes what the stamp told about a change that was made. */
  readonly onTold: (text: string) => void;
}

export function OneNode({ node, data, mayChange, onTold }: OneNodeProps): JSX.Element {
  const { name, faultDomain, freeBytes, totalBytes, freeFiles, replicas, fragments, takes, appendsPerSecond, syncP99Ms, blocked } = node;
  const facts: readonly (readonly [string, string])[] = [
    ["Fault domain", faultDomain === "" ? "none" : faultDomain],
    ["Free on its disk", `${bytesText(freeBytes)} of ${bytesText(totalBytes)}`],
    ["Files that can still be made", freeFiles === null ? "no fixed number, or not told" : countText(freeFiles)],
    ["Takes", takes === "" ? "–" : takes],
    ["Replicas", countText(replicas)],
    ["Fragments", fragments === null ? "–" : countText(fragments)],
    ["Appends", rateText(appendsPerSecond)],
    ["Journal sync, p99", msText(syncP99Ms)],
    ["Scrubbing", node.scrub === "" ? "–" : node.scrub],
  ];
  return (
    <Card title={name} wide aside={<a href={to("nodes")}>Close</a>}>
      <p>
        <Badge tone={toneOfNode(node)}>{dutyText(node)}</Badge> <a href={to("processes", name)}>Its process</a>
      </p>
      {mayChange ? <Changes node={node} data={data} onTold={onTold} /> : null}
      {blocked.length === 0 ? null : <div class="notice">Not empty yet: {blocked.join("; ")}</div>}
      {node.scrubFindings.length === 0 ? null : (
        <div class="notice bad">Scrubbing found damage, which repair replaces: {node.scrubFindings.join("; ")}</div>
      )}
      <dl class="facts">
        {facts.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {node.disks.length === 0 ? (
        <Empty title="The node tells nothing of its queue">It is down, or of an older release.</Empty>
      ) : (
        node.disks.map((disk) => <Queue disk={disk} key={disk.name} />)
      )}
    </Card>
  );
}

function Changes({ node, data, onTold }: Pick<OneNodeProps, "node" | "data" | "onTold">): JSX.Element {
  const { name, duty, replicas } = node;
  const change = async (what: Change, told: string): Promise<void> => {
    await data.change(what, { node: name });
    onTold(told);
  };
  return (
    <div class="buttons">
      {duty === "draining" ? (
        <Action
          label="Use again"
          title={`Use ${name} again?`}
          submit="Use again"
          run={() => change("undrain-node", `${name} serves again.`)}
        >
          <p>New replicas may be placed on it again. What was made elsewhere meanwhile stays there.</p>
        </Action>
      ) : (
        <Action
          label="Drain"
          title={`Drain ${name}?`}
          submit="Drain"
          run={() => change("drain-node", `${name} is being emptied. It serves reads meanwhile.`)}
        >
          <p>
            It gets nothing new, and its {countText(replicas)} replicas and its fragments are made again on other nodes, which need the room
            and the bandwidth. "Use again" takes that back.
          </p>
        </Action>
      )}
      <Action
        label="Remove"
        title={`Remove ${name} for good?`}
        submit="Remove"
        isFinal
        run={() => change("remove-node", `${name} is decommissioned: no later start brings it back.`)}
      >
        <p>
          The node is forgotten and its process is stopped. Its name is never used again. Only an empty node is removed: while it holds
          replicas, it is drained, and this says what it waits for.
        </p>
        <p>
          It holds {countText(replicas)} replicas now. Alike in a terminal: <code>./stamp node remove {name}</code>
        </p>
      </Action>
    </div>
  );
}

const Queue = ({ disk }: { readonly disk: DiskRow }): JSX.Element => (
  <section class="queue">
    <h3>{disk.name === "data" ? "Queue of the disk" : "Queue of the journal's disk"}</h3>
    <p>
      {countText(disk.inHand)} in hand, {countText(disk.waiting)} waiting
      {disk.waiting === 0 ? "" : `, the longest for ${msText(disk.oldestMs)}`}; {countText(disk.refused)} refused since the start;{" "}
      {bytesText(disk.freeBytes)} free
    </p>
    <ScrollTable
      label={`Operations of the disk ${disk.name}`}
      headings={["Work", ["Operations", "number"], ["Waited, mean", "number"], ["Waited, at most", "number"]]}
    >
      {disk.classes.map(({ name, started, meanMs, maxMs }) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td class="number">{countText(started)}</td>
          <td class="number">{started === 0 ? "–" : msText(meanMs)}</td>
          <td class="number">{started === 0 ? "–" : msText(maxMs)}</td>
        </tr>
      ))}
    </ScrollTable>
  </section>
);
