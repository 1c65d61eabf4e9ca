/** Where files are dropped or chosen, and how far each upload is. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AccountPlace } from "../data/data-model.ts";
import { begin, goOn, remove, type Upload, type UploadState, uploads } from "../data/uploads.ts";
import { bytesText } from "../format.ts";

interface UploadsProps extends AccountPlace {
  readonly container: string;
  readonly prefix: string;
  readonly onDone: () => void;
}

export function Uploads({ source, account, container, prefix, onDone }: UploadsProps): JSX.Element {
  const [isOver, setOver] = useState(false);
  const mine = uploads.value.filter(({ path }) => path.account === account && path.container === container);
  const take = (files: FileList | null | undefined): void => {
    for (const file of files ?? []) begin(source, { account, container, name: prefix + file.name }, file, onDone);
  };
  const over = (event: DragEvent, value: boolean): void => {
    event.preventDefault();
    setOver(value);
  };
  return (
    <section
      class={isOver ? "drop over" : "drop"}
      aria-label="Upload"
      onDragOver={(event) => over(event, true)}
      onDragLeave={(event) => over(event, false)}
      onDrop={(event) => {
        over(event, false);
        take(event.dataTransfer?.files);
      }}
    >
      <label>
        Drop files here, or choose them:{" "}
        <input
          type="file"
          multiple
          onChange={({ currentTarget }) => {
            take(currentTarget.files);
            currentTarget.value = "";
          }}
        />
      </label>
      {mine.length === 0 ? null : (
        <ul aria-label="Uploads">
          {mine.map((upload) => (
            <Row key={upload.id} upload={upload} goOn={() => goOn(source, upload.id, onDone)} />
          ))}
        </ul>
      )}
    </section>
  );
}

const words: Readonly<Record<UploadState, string>> = {
  queued: "waits for its turn",
  sending: "is sent",
  waiting: "was cut, and is tried again every second",
  done: "is there",
  exists: "waits for you",
  failed: "failed",
};

function Row({ upload, goOn: again }: { readonly upload: Upload; readonly goOn: () => void }): JSX.Element {
  const { id, path, file, bytesDone, state, problem } = upload;
  return (
    <li>
      <span>
        <bdi>{path.name}</bdi> {words[state]}: {bytesText(bytesDone)} of {bytesText(file.size)}
        {problem === "" ? null : <small> {problem}</small>}
      </span>
      <progress
        max={Math.max(file.size, 1)}
        value={state === "done" ? Math.max(file.size, 1) : bytesDone}
        aria-label={`Upload of ${path.name}`}
      />
      <div class="buttons">
        {state === "exists" ? (
          <button type="button" onClick={again}>
            Replace it
          </button>
        ) : null}
        {state === "failed" ? (
          <button type="button" onClick={again}>
            Go on
          </button>
        ) : null}
        <button type="button" onClick={() => remove(id)} aria-label={`${state === "done" ? "Take away" : "Stop"} ${path.name}`}>
          {state === "done" ? "Take away" : "Stop"}
        </button>
      </div>
    </li>
  );
}
