/** Blobs of a container by folders, and one blob with its beginning. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { AccountPlace, BlobDetails, BlobPath, BlobRow, Named, Preview } from "../data-model.ts";
import { bytesText, countText } from "../format.ts";
import { ListState, usePages } from "../pages.tsx";
import { to } from "../store.ts";
import { Card, Empty, Time } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";

interface BlobsProps extends AccountPlace {
  readonly container: string;
  readonly prefix: string;
}

export function Blobs({ source, account, container, prefix }: BlobsProps): JSX.Element {
  const pages = usePages((after) => source.blobs(account, container, prefix, after), `${account} ${container} ${prefix}`);
  const columns: readonly Column<BlobRow>[] = [
    {
      title: "Name",
      width: "minmax(14rem, 3fr)",
      cell: ({ name, isFolder }) => (
        <a href={to("data", account, isFolder ? "blobs" : "blob", container, name)}>
          <bdi>{name.slice(prefix.length) || "(empty)"}</bdi>
        </a>
      ),
    },
    { title: "Size", width: "6rem", cell: ({ bytes, isFolder }) => (isFolder ? "" : bytesText(bytes)), isNumber: true },
    { title: "Changed", width: "11rem", cell: ({ modifiedMs }) => (modifiedMs === null ? "" : <Time atMs={modifiedMs} withDate />) },
    { title: "Kind", width: "7rem", cell: ({ type, isFolder }) => (isFolder ? "folder" : type) },
    { title: "Content type", width: "minmax(9rem, 1fr)", cell: ({ contentType }) => <bdi>{contentType}</bdi> },
  ];
  return (
    <ListState
      pages={pages}
      what="blobs and folders"
      empty="Nothing lies here yet. An upload by any SDK of Azure Storage shows after Load again."
    >
      <VirtualTable
        label="Blobs"
        columns={columns}
        rows={pages.items}
        keyOf={({ name, isFolder }) => `${isFolder} ${name}`}
        onEnd={pages.more}
      />
    </ListState>
  );
}

type Loaded<T> = { readonly value?: T; readonly problem?: string };

function useLoaded<T>(load: () => Promise<T>): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({});
  useEffect(() => {
    let isWanted = true;
    load().then(
      (value) => isWanted && setLoaded({ value }),
      (error: unknown) => isWanted && setLoaded({ problem: (error as Error).message }),
    );
    return () => {
      isWanted = false;
    };
  }, []);
  return loaded;
}

interface OneBlobProps extends AccountPlace {
  readonly container: string;
  readonly name: string;
}

export function OneBlob({ source, account, container, name }: OneBlobProps): JSX.Element {
  const path: BlobPath = { account, container, name };
  const { value: details, problem } = useLoaded(() => source.blob(path));
  const [downloadProblem, setDownloadProblem] = useState("");
  if (problem !== undefined) return <Problem text={problem} />;
  if (details === undefined) return <Empty title="Asking for the blob…" />;
  const save = (): void => {
    setDownloadProblem("");
    source.download(path).catch((error: unknown) => setDownloadProblem((error as Error).message));
  };
  return (
    <div class="columns">
      <Card
        title={name.split("/").at(-1) || name}
        aside={
          <button type="button" onClick={save}>
            Download
          </button>
        }
      >
        {downloadProblem === "" ? null : <Problem text={downloadProblem} />}
        <Facts details={details} />
      </Card>
      <Card title="Preview">
        {details.bytes === 0 ? <Empty title="The blob is empty" /> : <Beginning load={() => source.preview(path)} />}
      </Card>
    </div>
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
    <Pairs some={details.properties} before="" />
    <Pairs some={details.metadata} before="Metadata " />
    <Pairs some={details.tags} before="Tag " />
  </dl>
);

const Pairs = ({ some, before }: { readonly some: readonly Named[]; readonly before: string }): JSX.Element => (
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
