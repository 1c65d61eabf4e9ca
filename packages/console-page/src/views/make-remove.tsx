/** Makes a container, table or queue, and removes one with all that is in it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../data/action.tsx";
import type { AccountPlace } from "../data/data-model.ts";

export type Kind = "container" | "table" | "queue";

interface MakeRemoveProps {
  readonly place: AccountPlace;
  readonly kind: Kind;
  readonly onDone: () => void;
}

const forms: Readonly<Record<Kind, string>> = {
  container: "3 to 63 small letters, digits and single hyphens; the first is no hyphen, nor is the last.",
  table: "3 to 63 letters and digits; the first is a letter.",
  queue: "3 to 63 small letters, digits and single hyphens; the first is no hyphen, nor is the last.",
};

const losses: Readonly<Record<Kind, string>> = {
  container: "All blobs in it go with it. It can be had back only if the account keeps deleted containers (view Accounts).",
  table: "All entities in it go with it, for good.",
  queue: "All messages in it go with it, for good.",
};

export function Make({ place: { source, account }, kind, onDone }: MakeRemoveProps): JSX.Element {
  const [name, setName] = useState("");
  return (
    <Action
      label={`Create a ${kind}`}
      title={`Create a ${kind}`}
      submit="Create"
      onOpen={() => setName("")}
      run={() => source.change(`create-${kind}`, { account, [kind]: name }).then(onDone)}
    >
      <label>
        Name <input value={name} required onInput={({ currentTarget }) => setName(currentTarget.value)} />
      </label>
      <p>{forms[kind]}</p>
    </Action>
  );
}

export function Remove({ place: { source, account }, kind, onDone, name }: MakeRemoveProps & { readonly name: string }): JSX.Element {
  const [typed, setTyped] = useState("");
  const remove = async (): Promise<void> => {
    if (typed !== name) throw new Error(`type ${name}, as it is written, to delete it`);
    await source.change(`delete-${kind}`, { account, [kind]: name });
    onDone();
  };
  return (
    <Action
      label="Delete"
      name={`Delete ${name}`}
      title={`Delete the ${kind} ${name}?`}
      submit="Delete"
      isFinal
      onOpen={() => setTyped("")}
      run={remove}
    >
      <p>{losses[kind]}</p>
      <label>
        Its name, to be sure <input value={typed} autocomplete="off" onInput={({ currentTarget }) => setTyped(currentTarget.value)} />
      </label>
    </Action>
  );
}
