/** The events that the console saw while it watched. */
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { countText } from "../format.ts";
import type { StampEvent } from "../model.ts";
import { events, to } from "../store.ts";
import { Empty, Time } from "../ui.tsx";

export function EventList({ events }: { readonly events: readonly StampEvent[] }): JSX.Element {
  if (events.length === 0)
    return <Empty title="Nothing yet">Ends and starts of processes, and findings that come and go, are told here.</Empty>;
  return (
    <ol class="events">
      {events.map(({ number, atMs, kind, subject, text }) => (
        <li key={number} class={kind}>
          <Time atMs={atMs} />
          <span>
            {subject === "" ? null : (
              <a href={to("processes", subject)}>
                <bdi>{subject}</bdi>
              </a>
            )}{" "}
            <bdi>{text}</bdi>
          </span>
        </li>
      ))}
    </ol>
  );
}

export function Events(): JSX.Element {
  const wanted = useSignal("");
  const shown = events.value
    .filter(({ subject, text }) => `${subject} ${text}`.toLowerCase().includes(wanted.value.toLowerCase()))
    .toReversed();
  return (
    <>
      <div class="bar">
        <label>
          Filter{" "}
          <input
            type="search"
            value={wanted.value}
            placeholder="extent-node-2"
            onInput={({ currentTarget }) => (wanted.value = currentTarget.value)}
          />
        </label>
        <span>
          {countText(shown.length)} of {countText(events.value.length)} events since the console began to watch
        </span>
        <button type="button" onClick={() => save(shown)}>
          Save as JSON lines
        </button>
      </div>
      <section class="card wide">
        {shown.length === 0 && events.value.length > 0 ? (
          <Empty title="No event has these words">Shorten the filter. Older events are in the logs: ./stamp logs</Empty>
        ) : (
          <EventList events={shown} />
        )}
      </section>
    </>
  );
}

function save(some: readonly StampEvent[]): void {
  const url = URL.createObjectURL(
    new Blob(
      some.map((each) => `${JSON.stringify(each)}\n`),
      { type: "application/x-ndjson" },
    ),
  );
  const link = document.createElement("a");
  link.href = url;
  link.download = "stamp-events.jsonl";
  link.click();
  URL.revokeObjectURL(url);
}
