/** Splits, merges and moves of a range by hand. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../../data/action.tsx";
import type { Change, DataSource } from "../../data/data-model.ts";
import type { RangeRow } from "../../model.ts";

interface RangeChangesProps {
  readonly range: RangeRow;
  /** Names of the partition servers that answer. */
  readonly servers: readonly string[];
  readonly data: DataSource;
  /** Takes what was changed, in words, and the names of the ranges that there are now. */
  readonly onTold: (text: string, ranges: readonly string[]) => void;
}

interface Told {
  readonly ranges: readonly { readonly id: string; readonly server: string }[];
  readonly heldMs: number;
}

export function RangeChanges({ range, servers, data, onTold }: RangeChangesProps): JSX.Element {
  const { id, table, highKey } = range;
  const change = async (what: Change, fields: object, words: (told: Told) => string): Promise<void> => {
    const told = (await data.change(what, { range: id, ...fields })) as unknown as Told;
    onTold(
      words(told),
      told.ranges.map((one) => one.id),
    );
  };
  const held = ({ heldMs }: Told): string => `Writes waited for ${heldMs} ms.`;
  return (
    <div class="buttons">
      <Action
        label="Split"
        title={`Split ${id}?`}
        submit="Split"
        run={() => change("split-range", {}, (told) => `${id} is split. ${held(told)}`)}
      >
        <p>
          Two ranges take its place, where its load is divided evenly, or else its rows. Writes to it wait for some milliseconds. If it is
          cold, load balancing may merge the two again.
        </p>
        <p>
          At a key of your choice, in a terminal: <code>./stamp partition split {id} --at-key KEY</code>
        </p>
      </Action>
      {highKey === "" ? null : (
        <Action
          label="Merge"
          title={`Merge ${id} with its neighbour above?`}
          submit="Merge"
          run={() => change("merge-range", {}, (told) => `${id} and its neighbour above are one range. ${held(told)}`)}
        >
          <p>
            The range of table {table} that begins at <bdi>{highKey}</bdi> is moved to the same server first. Writes to both wait for some
            milliseconds.
          </p>
        </Action>
      )}
      <Move range={range} servers={servers} change={change} />
    </div>
  );
}

interface MoveProps {
  readonly range: RangeRow;
  readonly servers: readonly string[];
  readonly change: (what: Change, fields: object, words: (told: Told) => string) => Promise<void>;
}

function Move({ range: { id, server: own }, servers, change }: MoveProps): JSX.Element {
  const [server, setServer] = useState("");
  const words = ({ ranges }: Told): string => {
    const now = ranges[0]?.server ?? "";
    return now === own ? `${id} stays at ${now}: no other server serves less.` : `${id} is served by ${now}.`;
  };
  return (
    <Action
      label="Move"
      title={`Move ${id}?`}
      submit="Move"
      onOpen={() => setServer("")}
      run={() => change("move-range", { server }, words)}
    >
      <p>
        {own === "" ? "No server has it now." : `${own} serves it now.`} It is not served for a moment while the other server loads it;
        clients repeat what fails meanwhile.
      </p>
      <label>
        To{" "}
        <select value={server} onChange={({ currentTarget }) => setServer(currentTarget.value)}>
          <option value="">the server that serves least</option>
          {servers
            .filter((name) => name !== own)
            .map((name) => (
              <option value={name} key={name}>
                {name}
              </option>
            ))}
        </select>
      </label>
    </Action>
  );
}
