/** Makes a URL with a signature, and shows it with samples of code. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Action } from "../data/action.tsx";
import type { DataSource } from "../data/data-model.ts";
import { type Shared, samplesOf } from "../data/samples.ts";
import { CommandLine, Time } from "../ui.tsx";

/** Permissions of a signature: letter of the service, and words. The first is chosen unless the person chooses another. */
const permissionsOf: Readonly<Record<Shared, readonly (readonly [string, string])[]>> = {
  blob: [
    ["r", "read"],
    ["w", "write"],
    ["d", "delete"],
  ],
  container: [
    ["r", "read"],
    ["a", "add to append blobs"],
    ["c", "create"],
    ["w", "write"],
    ["d", "delete"],
    ["l", "list"],
  ],
  table: [
    ["r", "query"],
    ["a", "add"],
    ["u", "update"],
    ["d", "delete"],
  ],
  queue: [
    ["r", "peek"],
    ["a", "add"],
    ["u", "update"],
    ["p", "take"],
  ],
};

const lasts = [
  { hours: 1, title: "an hour" },
  { hours: 24, title: "a day" },
  { hours: 168, title: "a week" },
  { hours: 720, title: "30 days" },
];

interface ShareProps {
  readonly source: DataSource;
  readonly kind: Shared;
  /** Names of the thing, as the console takes them. */
  readonly fields: Readonly<Record<string, string>>;
}

export function Share({ source, kind, fields }: ShareProps): JSX.Element {
  const all = permissionsOf[kind];
  const first = kind === "container" ? "rl" : "r";
  const [chosen, setChosen] = useState(first);
  const [hours, setHours] = useState("24");
  const [made, setMade] = useState<{ readonly url: string; readonly expiresMs: number }>();
  const letters = all.map(([letter]) => letter).filter((letter) => chosen.includes(letter));
  const make = async (): Promise<void> => {
    if (letters.length === 0) throw new Error("choose what the URL may be used for");
    const told = await source.change("make-sas", { ...fields, permissions: letters.join(""), hours: Number(hours) });
    setMade(told as { readonly url: string; readonly expiresMs: number });
  };
  return (
    <>
      <Action label="Share" title={`A URL of this ${kind}`} submit="Make the URL" run={make} onOpen={() => setMade(undefined)}>
        <fieldset>
          <legend>Whoever has the URL may</legend>
          {all.map(([letter, title]) => (
            <label key={letter}>
              <input
                type="checkbox"
                checked={chosen.includes(letter)}
                onChange={({ currentTarget }) => setChosen(currentTarget.checked ? chosen + letter : chosen.replace(letter, ""))}
              />{" "}
              {title}
            </label>
          ))}
        </fieldset>
        <label>
          For{" "}
          <select value={hours} onChange={({ currentTarget }) => setHours(currentTarget.value)}>
            {lasts.map((each) => (
              <option key={each.hours} value={String(each.hours)}>
                {each.title}
              </option>
            ))}
          </select>
        </label>
        <p>Only a new key of the account ends the URL before its time.</p>
      </Action>
      {made === undefined ? null : (
        <section class="card shared" aria-label="The URL">
          <p>
            Works until <Time atMs={made.expiresMs} withDate />. It is shown once.
          </p>
          <CommandLine text={made.url} />
          {samplesOf(kind, made.url).map(({ title, text }) => (
            <div key={title}>
              <h2>{title}</h2>
              <CommandLine text={text} />
            </div>
          ))}
        </section>
      )}
    </>
  );
}
