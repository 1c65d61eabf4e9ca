/** Accounts of the stamp: to create one, and the settings and keys of each. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { changedSettings } from "../data/account-settings.ts";
import { Action } from "../data/action.tsx";
import type { AccountDetails, AccountRow, Change, DataSource, Named } from "../data/data-model.ts";
import type { Source } from "../model.ts";
import { ListState, useLoaded, usePages } from "../pages.tsx";
import { route, to } from "../store.ts";
import { Card, CommandLine, Empty, Time } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";
import { UsageOfAccount } from "./usage.tsx";

interface AccountsProps {
  readonly source: Source;
  readonly data: DataSource;
}

export function Accounts({ source, data }: AccountsProps): JSX.Element {
  const { value: role } = useLoaded(source.role);
  const name = route.value[1];
  return (
    <>
      {role === undefined || role === "operate" ? null : (
        <div class="notice">
          This session may not change accounts. A link to that: <code>./stamp console --role operate</code>
        </div>
      )}
      {name === undefined ? (
        <List data={data} mayChange={role === "operate"} />
      ) : (
        <Account data={data} mayChange={role === "operate"} name={name} key={name} />
      )}
    </>
  );
}

const columns: readonly Column<AccountRow>[] = [
  { title: "Account", width: "minmax(12rem, 3fr)", cell: ({ name }) => <a href={to("accounts", name)}>{name}</a> },
  { title: "Created", width: "minmax(8rem, 1fr)", cell: ({ createdMs }) => <Time atMs={createdMs} withDate /> },
];

function List({ data, mayChange }: { readonly data: DataSource; readonly mayChange: boolean }): JSX.Element {
  const pages = usePages(data.accounts, "accounts");
  const [name, setName] = useState("");
  return (
    <>
      {mayChange ? (
        <div class="buttons">
          <Action
            label="Create an account"
            title="Create an account"
            submit="Create"
            onOpen={() => setName("")}
            run={() => data.change("create-account", { account: name }).then(pages.reload)}
          >
            <label>
              Name, 3 to 24 lower-case letters and digits{" "}
              <input value={name} required pattern="[a-z0-9]{3,24}" onInput={({ currentTarget }) => setName(currentTarget.value)} />
            </label>
            <p>It gets two random keys. "Show keys" on its page shows them.</p>
          </Action>
        </div>
      ) : null}
      <ListState pages={pages} what="accounts" empty={<CommandLine text="./stamp account create NAME" />}>
        <VirtualTable label="Accounts" columns={columns} rows={pages.items} keyOf={(row) => row.name} onEnd={pages.more} />
      </ListState>
    </>
  );
}

interface AccountProps {
  readonly data: DataSource;
  readonly mayChange: boolean;
  readonly name: string;
}

function Account({ data, mayChange, name }: AccountProps): JSX.Element {
  const [round, setRound] = useState(0);
  const { value: account, problem } = useLoaded(() => data.account(name), round);
  return (
    <>
      <nav class="path" aria-label="Path">
        <a href={to("accounts")}>Accounts</a>
        <span aria-hidden="true"> › </span>
        <bdi>{name}</bdi>
      </nav>
      {problem === undefined ? null : (
        <div class="notice bad" role="alert">
          {problem}.{" "}
          <button type="button" onClick={() => setRound(round + 1)}>
            Try again
          </button>
        </div>
      )}
      {account === undefined ? (
        problem === undefined ? (
          <Empty title="Asking for the account…" />
        ) : null
      ) : (
        <>
          {mayChange ? <Changes data={data} account={account} onChange={() => setRound(round + 1)} /> : null}
          <Facts account={account} />
          <UsageOfAccount data={data} account={name} />
        </>
      )}
    </>
  );
}

const daysText = (days: number): string => (days === 0 ? "not kept" : `kept for ${days} days`);
const listText = (some: readonly Named[]): string =>
  some.length === 0 ? "none" : some.map(({ name, value }) => `${name}: ${value}`).join("; ");

function Facts({ account }: { readonly account: AccountDetails }): JSX.Element {
  const { name, createdMs, versioning, publicAccess, containerDays, blobDays, defaultServiceVersion, scopes, cors } = account;
  const facts: readonly (readonly [string, string])[] = [
    ["Versions of blobs", versioning ? "every write keeps what was there" : "off"],
    ["Public access", publicAccess ? "containers can be made public" : "forbidden"],
    ["Deleted containers", daysText(containerDays)],
    ["Deleted blobs", daysText(blobDays)],
    ["Version of requests that name none", defaultServiceVersion === "" ? "the service's own" : defaultServiceVersion],
    ["Encryption scopes", listText(scopes)],
    ["CORS", listText(cors)],
  ];
  return (
    <Card title={name} wide aside={<a href={to("data", name)}>What is stored in it</a>}>
      <dl class="facts">
        <div>
          <dt>Created</dt>
          <dd>
            <Time atMs={createdMs} withDate />
          </dd>
        </div>
        {facts.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

interface ChangesProps {
  readonly data: DataSource;
  readonly account: AccountDetails;
  readonly onChange: () => void;
}

function Changes({ data, account, onChange }: ChangesProps): JSX.Element {
  const { name } = account;
  const [keys, setKeys] = useState<readonly string[]>();
  const [shown, setShown] = useState(account);
  const [settings, setSettings] = useState(account);
  const [missing, setMissing] = useState("");
  const [number, setNumber] = useState("1");
  const change = async (what: Change, fields: Readonly<Record<string, unknown>>): Promise<void> => {
    const { notInForce } = await data.change(what, { account: name, ...fields });
    setMissing(typeof notInForce === "string" ? notInForce : "");
    setKeys(undefined);
    onChange();
  };
  const show = async (): Promise<void> => {
    const told = await data.change("show-keys", { account: name });
    setKeys(Array.isArray(told.keys) ? told.keys.map(String) : []);
  };
  const { versioning, publicAccess, containerDays } = settings;
  return (
    <>
      <div class="buttons">
        <Action label="Show keys" title="Show the keys?" submit="Show" run={show}>
          <p>Whoever has a key may do everything in the account. The audit log says that this session saw them.</p>
        </Action>
        <Action
          label="Rotate a key"
          title="Make a new key?"
          submit="Rotate"
          isFinal
          run={() => change("rotate-key", { number: Number(number) })}
        >
          <label>
            Key{" "}
            <select value={number} onChange={({ currentTarget }) => setNumber(currentTarget.value)}>
              <option value="1">1</option>
              <option value="2">2</option>
            </select>
          </label>
          <p>The old key ends, and with it every signature that was made by it. Let programs go over to the other key first.</p>
        </Action>
        <Action
          label="Settings"
          title={`Settings of ${name}`}
          submit="Save"
          onOpen={() => {
            setShown(account);
            setSettings(account);
          }}
          run={() => change("set-account", changedSettings(shown, settings))}
        >
          <label>
            <input
              type="checkbox"
              checked={versioning}
              onChange={({ currentTarget }) => setSettings({ ...settings, versioning: currentTarget.checked })}
            />{" "}
            Every write keeps what was there as a version
          </label>
          <label>
            <input
              type="checkbox"
              checked={publicAccess}
              onChange={({ currentTarget }) => setSettings({ ...settings, publicAccess: currentTarget.checked })}
            />{" "}
            Containers can be made public
          </label>
          <label>
            Days for which deleted containers are kept; 0: not at all{" "}
            <input
              type="number"
              min={0}
              max={365}
              required
              value={containerDays}
              onInput={({ currentTarget }) => setSettings({ ...settings, containerDays: currentTarget.valueAsNumber })}
            />
          </label>
        </Action>
        <Action
          label="End delegation keys"
          title="End every user delegation key?"
          submit="End them"
          isFinal
          run={() => change("revoke-delegation", {})}
        >
          <p>Every signature that was made by one ends, too.</p>
        </Action>
      </div>
      {missing === "" ? null : (
        <div class="notice bad" role="alert">
          The change is made, but not in force everywhere: {missing}
        </div>
      )}
      {keys === undefined ? null : (
        <section class="card" aria-label="Keys">
          {keys.map((key) => (
            <CommandLine key={key} text={key} />
          ))}
          <button type="button" onClick={() => setKeys(undefined)}>
            Hide
          </button>
        </section>
      )}
    </>
  );
}
