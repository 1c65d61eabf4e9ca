/** Shows what is stored in the stamp: accounts, and the containers, tables and queues of each. */
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { AccountPlace, AccountRow, ContainerRow, DataSource, Named, QueueRow } from "../data/data-model.ts";
import type { Page } from "../model.ts";
import { ListState, usePages } from "../pages.tsx";
import { route, to } from "../store.ts";
import { CommandLine, Empty, Time } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";
import { Blobs } from "./blobs.tsx";
import { Entities } from "./entities.tsx";
import { type Kind, Make, Remove } from "./make-remove.tsx";
import { Messages } from "./messages.tsx";
import { OneBlob } from "./one-blob.tsx";

export function Data({ source }: { readonly source: DataSource }): JSX.Element {
  const [, account, kind = "containers", name, inside] = route.value;
  if (account === undefined) return <Accounts source={source} />;
  const place = { source, account };
  const trail = [
    { title: "Accounts", href: to("data") },
    { title: account, href: to("data", account) },
  ];
  const key = route.value.join("/");
  if (name !== undefined && (kind === "blobs" || kind === "blob")) {
    const parents = [...trail, { title: name, href: to("data", account, "blobs", name) }, ...foldersOf(account, name, inside ?? "")];
    return (
      <>
        <Trail steps={parents} />
        {kind === "blobs" ? (
          <Blobs {...place} container={name} prefix={inside ?? ""} key={key} />
        ) : (
          <OneBlob {...place} container={name} name={inside ?? ""} key={key} />
        )}
      </>
    );
  }
  if (name !== undefined && (kind === "tables" || kind === "queues")) {
    return (
      <>
        <Trail steps={[...trail, { title: name, href: to("data", account, kind, name) }]} />
        {kind === "tables" ? <Entities {...place} table={name} key={key} /> : <Messages {...place} queue={name} key={key} />}
      </>
    );
  }
  return (
    <>
      <Trail steps={trail} />
      <Kinds {...place} kind={kind} key={key} />
    </>
  );
}

interface Step {
  readonly title: string;
  readonly href: string;
}

/** The folders above a blob, each with the whole beginning of its names. */
function foldersOf(account: string, container: string, inside: string): Step[] {
  const parts = inside.split("/").slice(0, -1);
  return parts.map((title, index) => {
    const prefix = `${parts.slice(0, index + 1).join("/")}/`;
    return { title: title === "" ? "(empty)" : title, href: to("data", account, "blobs", container, prefix) };
  });
}

const Trail = ({ steps }: { readonly steps: readonly Step[] }): JSX.Element => (
  <nav class="path" aria-label="Path">
    {steps.map(({ title, href }, index) => (
      <span key={href}>
        {index === 0 ? null : <span aria-hidden="true"> › </span>}
        <a href={href} aria-current={index === steps.length - 1 ? "page" : undefined}>
          <bdi>{title}</bdi>
        </a>
      </span>
    ))}
  </nav>
);

const accountColumns: readonly Column<AccountRow>[] = [
  { title: "Account", width: "minmax(12rem, 3fr)", cell: ({ name }) => <a href={to("data", name)}>{name}</a> },
  { title: "Created", width: "minmax(8rem, 1fr)", cell: ({ createdMs }) => <Time atMs={createdMs} withDate /> },
];

function Accounts({ source }: { readonly source: DataSource }): JSX.Element {
  const pages = usePages(source.accounts, "accounts");
  return (
    <ListState pages={pages} what="accounts" empty={<CommandLine text="./stamp account create NAME" />}>
      <VirtualTable label="Accounts" columns={accountColumns} rows={pages.items} keyOf={({ name }) => name} onEnd={pages.more} />
    </ListState>
  );
}

const kinds = ["containers", "tables", "queues"] as const;
const oneOf: Readonly<Record<(typeof kinds)[number], Kind>> = { containers: "container", tables: "table", queues: "queue" };

const namedText = (some: readonly Named[]): string => some.map(({ name, value }) => `${name}=${value}`).join(", ");

type Listed = ContainerRow | QueueRow | { readonly name: string };

function Kinds({ source, account, kind }: AccountPlace & { readonly kind: string }): JSX.Element {
  const known = kinds.find((each) => each === kind);
  return (
    <>
      <nav class="tabs" aria-label="Kinds of data">
        {kinds.map((each) => (
          <a key={each} class="tab" href={to("data", account, each)} aria-current={each === kind ? "page" : undefined}>
            {`${each[0]?.toUpperCase()}${each.slice(1)}`}
          </a>
        ))}
      </nav>
      {known === undefined ? <Empty title="There is no such kind of data" /> : <List source={source} account={account} kind={known} />}
    </>
  );
}

function List({ source, account, kind }: AccountPlace & { readonly kind: (typeof kinds)[number] }): JSX.Element {
  const load = (after: string): Promise<Page<Listed>> => source[kind](account, after);
  const pages = usePages(load, `${account} ${kind}`);
  const done = { place: { source, account }, kind: oneOf[kind], onDone: pages.reload };
  const columns = useMemo((): readonly Column<Listed>[] => {
    const actions = { title: "Actions", width: "6rem", cell: (row: Listed) => <Remove {...done} name={row.name} /> };
    const path = kind === "containers" ? "blobs" : kind;
    const name = {
      title: "Name",
      width: "minmax(12rem, 2fr)",
      cell: (row: Listed) => <a href={to("data", account, path, row.name)}>{row.name}</a>,
    };
    const metadata = {
      title: "Metadata",
      width: "minmax(8rem, 2fr)",
      cell: (row: Listed) => <bdi>{"metadata" in row ? namedText(row.metadata) : ""}</bdi>,
    };
    if (kind === "tables") return [name, actions];
    if (kind === "queues") return [name, metadata, actions];
    return [
      name,
      {
        title: "Changed",
        width: "11rem",
        cell: (row) => ("modifiedMs" in row && row.modifiedMs !== null ? <Time atMs={row.modifiedMs} withDate /> : "–"),
      },
      { title: "Public", width: "6rem", cell: (row) => ("publicAccess" in row && row.publicAccess !== "" ? row.publicAccess : "no") },
      { title: "Lease", width: "6rem", cell: (row) => ("lease" in row ? row.lease : "") },
      metadata,
      actions,
    ];
  }, [account, kind]);
  return (
    <>
      <div class="buttons">
        <Make {...done} />
      </div>
      <ListState pages={pages} what={kind} empty="The account has none yet: create one here, or by any SDK of Azure Storage.">
        <VirtualTable label={kind} columns={columns} rows={pages.items} keyOf={({ name }) => name} onEnd={pages.more} />
      </ListState>
    </>
  );
}
