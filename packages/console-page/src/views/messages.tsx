/** The messages at the front of a queue; to put, take and clear. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../data/action.tsx";
import type { AccountPlace, MessageRow } from "../data/data-model.ts";
import { countText } from "../format.ts";
import { ListState, usePages } from "../pages.tsx";
import { Time } from "../ui.tsx";
import { type Column, VirtualTable } from "../virtual-table.tsx";
import { Share } from "./share.tsx";

const messageColumns: readonly Column<MessageRow>[] = [
  { title: "Text", width: "minmax(14rem, 3fr)", cell: ({ text }) => <bdi>{text}</bdi> },
  { title: "Put", width: "11rem", cell: ({ insertedMs }) => <Time atMs={insertedMs} withDate /> },
  { title: "Ends", width: "11rem", cell: ({ expiresMs }) => <Time atMs={expiresMs} withDate /> },
  { title: "Taken before", width: "7rem", cell: ({ dequeueCount }) => countText(dequeueCount), isNumber: true },
];

export function Messages({ source, account, queue }: AccountPlace & { readonly queue: string }): JSX.Element {
  const pages = usePages(() => source.messages(account, queue), `${account} ${queue}`);
  const [text, setText] = useState("");
  const [taken, setTaken] = useState<string>();
  const take = async (): Promise<void> => {
    const told = await source.change("take-message", { account, queue });
    if (typeof told.text !== "string") throw new Error("no message is visible: somebody else took the last one");
    setTaken(told.text);
    pages.reload();
  };
  return (
    <>
      <div class="buttons">
        <Action
          label="Put a message"
          title="Put a message"
          submit="Put"
          onOpen={() => setText("")}
          run={() => source.change("put-message", { account, queue, text }).then(pages.reload)}
        >
          <label>
            Text <textarea rows={5} value={text} onInput={({ currentTarget }) => setText(currentTarget.value)} />
          </label>
        </Action>
        <Action label="Take the first" title="Take the first message?" submit="Take" isFinal run={take}>
          <p>It leaves the queue, and is shown here.</p>
        </Action>
        <Action
          label="Clear"
          title="Clear the queue?"
          submit="Clear"
          isFinal
          run={() => source.change("clear-queue", { account, queue }).then(pages.reload)}
        >
          <p>All messages end, also those that clients have taken.</p>
        </Action>
        <Share source={source} kind="queue" fields={{ account, queue }} />
      </div>
      {taken === undefined ? null : (
        <section class="card" aria-label="The message that was taken">
          <pre>
            <bdi>{taken}</bdi>
          </pre>
        </section>
      )}
      <p>At most 32 messages at the front are shown, and stay there.</p>
      <ListState
        pages={pages}
        what="messages"
        empty="No message is visible. Those that a client has taken come back when its time has run out."
      >
        <VirtualTable label="Messages" columns={messageColumns} rows={pages.items} keyOf={({ id }) => id} />
      </ListState>
    </>
  );
}
