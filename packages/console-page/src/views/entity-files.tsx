/** Entities of a table from a file, and into one. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Action } from "../data/action.tsx";
import type { AccountPlace } from "../data/data-model.ts";
import { type EntityFormat, entitiesIn, formatOf } from "../data/entity-file.ts";
import { type Imported, importEntities } from "../data/import-entities.ts";
import { countText } from "../format.ts";

interface EntityFilesProps extends AccountPlace {
  readonly table: string;
  /** Filter of the list, which the export follows; empty for all entities. */
  readonly filter: string;
  readonly onDone: () => void;
}

const sumText = ({ written, kept }: Imported): string =>
  `${countText(written)} entities written${kept === 0 ? "" : `, ${countText(kept)} were there and stay`}`;

export const EntityFiles = (props: EntityFilesProps): JSX.Element => (
  <>
    <ImportFile {...props} />
    <ExportFile {...props} />
  </>
);

function ImportFile({ source, account, table, onDone }: EntityFilesProps): JSX.Element {
  const [file, setFile] = useState<File>();
  const [replace, setReplace] = useState(false);
  const [sum, setSum] = useState<Imported>();
  const [isDone, setDone] = useState(false);
  const ended = useRef(new AbortController());
  const end = (): void => ended.current.abort();
  useEffect(() => end, []);
  const begin = (): void => {
    ended.current = new AbortController();
    setFile(undefined);
    setSum(undefined);
    setDone(false);
  };
  const run = async (): Promise<void> => {
    if (file === undefined) throw new Error("choose a file");
    const format = formatOf(file.name);
    if (format === undefined) throw new Error("the name of the file ends with .csv, .jsonl, .ndjson or .json");
    const { signal } = ended.current;
    let now: Imported = { written: 0, kept: 0 };
    try {
      for await (now of importEntities(source, { account, table, replace }, entitiesIn(textOf(file), format), signal)) setSum(now);
      setSum(now);
      setDone(true);
    } catch (error) {
      throw new Error(`${(error as Error).message}. ${sumText(now)} before: mend the file, and import it again.`);
    } finally {
      onDone();
    }
  };
  return (
    <>
      <Action label="Import" title="Import entities" submit="Import" run={run} onOpen={begin} onClose={end}>
        <label>
          File of CSV or JSON lines{" "}
          <input type="file" accept=".csv,.jsonl,.ndjson,.json" onChange={({ currentTarget }) => setFile(currentTarget.files?.[0])} />
        </label>
        <label>
          <input type="checkbox" checked={replace} onChange={({ currentTarget }) => setReplace(currentTarget.checked)} /> Replace entities
          that are there
        </label>
        {sum === undefined || isDone ? null : <p role="status">{sumText(sum)}</p>}
      </Action>
      {sum !== undefined && isDone ? <span role="status">{sumText(sum)}</span> : null}
    </>
  );
}

/** Text of a file, piece by piece. Throws if it is not UTF-8. */
async function* textOf(file: File): AsyncGenerator<string> {
  const reader = file.stream().getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for (;;) {
      const { done, value } = await reader.read();
      yield decoder.decode(value, { stream: !done });
      if (done) return;
    }
  } catch (error) {
    throw error instanceof TypeError ? new Error('the file is no text in UTF-8: save it so, e.g. as "CSV UTF-8"') : error;
  } finally {
    await reader.cancel();
  }
}

function ExportFile({ source, account, table, filter }: EntityFilesProps): JSX.Element {
  const [format, setFormat] = useState<EntityFormat>("csv");
  return (
    <Action label="Export" title="Export entities" submit="Download" run={() => source.exportTable(account, table, filter, format)}>
      <label>
        As{" "}
        <select value={format} onChange={({ currentTarget }) => setFormat(currentTarget.value as EntityFormat)}>
          <option value="csv">CSV</option>
          <option value="jsonl">JSON lines</option>
        </select>
      </label>
      <p>{filter === "" ? "All entities, with the types of their properties." : `The entities that the filter shows: ${filter}`}</p>
    </Action>
  );
}
