/** One blob: its properties, what can be done with it, and its beginning. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Action, NamedFields } from "../data/action.tsx";
import type { AccountPlace, BlobDetails, BlobPath, DataSource, Named, Preview } from "../data/data-model.ts";
import { bytesText, countText } from "../format.ts";
import { useLoaded } from "../pages.tsx";
import { to } from "../store.ts";
import { Card, Empty, Time } from "../ui.tsx";
import { Past } from "./blob-past.tsx";
import { Share } from "./share.tsx";
import { BlobPlaces } from "./streams/blob-places.tsx";

interface OneBlobProps extends AccountPlace {
  readonly container: string;
  readonly name: string;
}

export function OneBlob({ source, account, container, name }: OneBlobProps): JSX.Element {
  const path: BlobPath = { account, container, name };
  const [round, setRound] = useState(0);
  const { value: details, problem } = useLoaded(() => source.blob(path), round);
  if (problem !== undefined) return <Problem text={problem} />;
  if (details === undefined) return <Empty title="Asking for the blob…" />;
  return (
    <>
      <Actions source={source} path={path} details={details} onChange={() => setRound(round + 1)} />
      <div class="columns">
        <Card title={name.split("/").at(-1) || name}>
          <Facts details={details} />
        </Card>
        <Card title="Preview">
          {details.bytes === 0 ? <Empty title="The blob is empty" /> : <Beginning load={() => source.preview(path)} key={details.etag} />}
        </Card>
      </div>
      <Past source={source} path={path} etag={details.etag} onChange={() => setRound(round + 1)} />
      <BlobPlaces source={source} path={path} etag={details.etag} key={`places ${details.etag}`} />
    </>
  );
}

interface ActionsProps {
  readonly source: DataSource;
  readonly path: BlobPath;
  readonly details: BlobDetails;
  readonly onChange: () => void;
}

function Actions({ source, path, details, onChange }: ActionsProps): JSX.Element {
  const [problem, setProblem] = useState("");
  const save = (): void => {
    setProblem("");
    source.download(path).catch((error: unknown) => setProblem((error as Error).message));
  };
  const remove = async (): Promise<void> => {
    await source.change("delete-blob", { ...path, etag: details.etag });
    const folder = path.name.slice(0, path.name.lastIndexOf("/", path.name.length - 2) + 1);
    location.hash = to("data", path.account, "blobs", path.container, ...(folder === "" ? [] : [folder]));
  };
  return (
    <>
      <div class="buttons">
        <button type="button" onClick={save}>
          Download
        </button>
        <Pairs label="Metadata" of={details.metadata} run={(pairs) => change("set-metadata", pairs)} />
        <Pairs label="Tags" of={details.tags} run={(pairs) => change("set-tags", pairs)} />
        <Share source={source} kind="blob" fields={{ ...path }} />
        <Action label="Delete" title="Delete the blob?" submit="Delete" isFinal run={remove}>
          <p>
            <bdi>{path.name}</bdi>, with its snapshots. If the account keeps deleted blobs, the list of the container can bring it back.
          </p>
        </Action>
      </div>
      {problem === "" ? null : <Problem text={problem} />}
    </>
  );

  async function change(what: "set-metadata" | "set-tags", pairs: readonly Named[]): Promise<void> {
    await source.change(what, { ...path, etag: details.etag, pairs });
    onChange();
  }
}

interface PairsProps {
  readonly label: string;
  readonly of: readonly Named[];
  readonly run: (pairs: readonly Named[]) => Promise<void>;
}

/** A button that opens names and values to write anew. */
function Pairs({ label, of, run }: PairsProps): JSX.Element {
  const [pairs, setPairs] = useState(of);
  return (
    <Action label={label} title={`${label} of the blob`} submit="Save" onOpen={() => setPairs(of)} run={() => run(pairs)}>
      <NamedFields rows={pairs} onChange={setPairs} what="Name" add="Add one" blank={{ name: "", value: "" }} />
    </Action>
  );
}

const Problem = ({ text }: { readonly text: string }): JSX.Element => (
  <p class="notice bad" role="alert">
    {text}
  </p>
);

const Facts = ({ details }: { readonly details: BlobDetails }): JSX.Element => (
  <dl class="pairs">
    <dt>Size</dt>
    <dd>
      {bytesText(details.bytes)} ({countText(details.bytes)} bytes)
    </dd>
    <dt>Changed</dt>
    <dd>{details.modifiedMs === null ? "–" : <Time atMs={details.modifiedMs} withDate />}</dd>
    <dt>Created</dt>
    <dd>{details.createdMs === null ? "–" : <Time atMs={details.createdMs} withDate />}</dd>
    <PairRows some={details.properties} before="" />
    <PairRows some={details.metadata} before="Metadata " />
    <PairRows some={details.tags} before="Tag " />
  </dl>
);

const PairRows = ({ some, before }: { readonly some: readonly Named[]; readonly before: string }): JSX.Element => (
  <>
    {some.flatMap(({ name, value }) => [
      <dt key={`${name} name`}>{`${before}${name}`}</dt>,
      <dd key={name}>
        <bdi>{value}</bdi>
      </dd>,
    ])}
  </>
);

function Beginning({ load }: { readonly load: () => Promise<Preview> }): JSX.Element {
  const { value, problem } = useLoaded(load);
  if (problem !== undefined) return <Problem text={problem} />;
  if (value === undefined) return <Empty title="Asking for the content…" />;
  if ("image" in value) return <Picture image={value.image} />;
  if (value.text === null) return <Empty title="The content is neither text nor a picture that a page shows">Download it.</Empty>;
  return (
    <>
      <section class="content" tabIndex={0} aria-label="Beginning of the blob">
        <pre>{pretty(value.text, value.isWhole)}</pre>
      </section>
      {value.isWhole ? null : <p>This is the beginning; the whole is in the download.</p>}
    </>
  );
}

/** JSON gets lines and indents, if the whole of it is here. */
function pretty(text: string, isWhole: boolean): string {
  if (!isWhole || !/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}

/** An address inside the browser, which ends with the picture. */
function Picture({ image }: { readonly image: Blob }): JSX.Element | null {
  const [url, setUrl] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(image);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [image]);
  return url === "" ? null : <img class="preview" src={url} alt="Content of the blob" />;
}
