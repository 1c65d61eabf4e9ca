/** Versions and snapshots of one blob: to download, to make the current one again, to delete. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../data/action.tsx";
import type { BlobPast, BlobPath, DataSource } from "../data/data-model.ts";
import { bytesText } from "../format.ts";
import { ListState, usePages } from "../pages.tsx";
import { Card, ScrollTable, Time } from "../ui.tsx";

interface BlobPastProps {
  readonly source: DataSource;
  readonly path: BlobPath;
  /** ETag of the blob as it is shown. */
  readonly etag: string;
  readonly onChange: () => void;
}

export function Past({ source, path, etag, onChange }: BlobPastProps): JSX.Element {
  const pages = usePages((after) => source.past(path, after), `${path.account} ${path.container} ${path.name} ${etag}`);
  const [problem, setProblem] = useState("");
  const save = ({ kind, id }: BlobPast): void => {
    setProblem("");
    source.download({ ...path, kind, id }).catch((error: unknown) => setProblem((error as Error).message));
  };
  return (
    <Card
      title="Versions and snapshots"
      wide
      aside={
        <Action
          label="Make a snapshot"
          title="Keep the blob as it is now?"
          submit="Make a snapshot"
          run={() => source.change("make-snapshot", { ...path }).then(pages.reload)}
        >
          <p>The snapshot stays as it is when the blob changes. It shares its bytes with the blob.</p>
        </Action>
      }
    >
      {problem === "" ? null : (
        <p class="notice bad" role="alert">
          {problem}
        </p>
      )}
      <ListState
        pages={pages}
        what="versions and snapshots"
        empty="Versions are kept if the account's settings say so; a snapshot is made here."
      >
        <ScrollTable label="Versions and snapshots" headings={["Kind", "Written", "Id", ["Size", "number"], "Actions"]}>
          {pages.items.map((each) => (
            <tr key={`${each.kind} ${each.id}`}>
              <td>{each.kind}</td>
              <td>{each.modifiedMs === null ? "–" : <Time atMs={each.modifiedMs} withDate />}</td>
              <td>
                <code>{each.id}</code>
              </td>
              <td class="number">{bytesText(each.bytes)}</td>
              <td>
                <div class="buttons">
                  <button type="button" onClick={() => save(each)} aria-label={`Download ${each.kind} ${each.id}`}>
                    Download
                  </button>
                  <Action
                    label="Make current"
                    name={`Make current: ${each.kind} ${each.id}`}
                    title="Write it over the blob?"
                    submit="Make current"
                    run={() => source.change("restore-blob", { ...path, ...whichOf(each), etag }).then(onChange)}
                  >
                    <p>
                      The blob gets the content, properties and metadata of the {each.kind}. If versions are kept, what is there now becomes
                      one; otherwise it is gone.
                    </p>
                  </Action>
                  <Action
                    label="Delete"
                    name={`Delete ${each.kind} ${each.id}`}
                    title={`Delete the ${each.kind}?`}
                    submit="Delete"
                    isFinal
                    run={() => source.change("delete-past", { ...path, ...whichOf(each) }).then(pages.reload)}
                  >
                    <p>The blob itself and its other versions and snapshots stay.</p>
                  </Action>
                </div>
              </td>
            </tr>
          ))}
        </ScrollTable>
        {pages.isWhole ? null : (
          <button type="button" onClick={pages.more}>
            Load more
          </button>
        )}
      </ListState>
    </Card>
  );
}

const whichOf = ({ kind, id }: BlobPast): Pick<BlobPast, "kind" | "id"> => ({ kind, id });
