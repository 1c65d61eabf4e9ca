/** Small parts that the views are made of. */
import type { ComponentChildren, JSX } from "preact";
import { dayText, timeText, utcText } from "./format.ts";
import type { State } from "./model.ts";

export type Tone = "good" | "warn" | "bad" | "calm";

export const toneOf: Readonly<Record<State, Tone>> = {
  healthy: "good",
  degraded: "warn",
  unknown: "warn",
  danger: "bad",
  stopped: "bad",
  absent: "bad",
};

/** A state in words; its colour only repeats the words. */
export const Badge = ({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }): JSX.Element => (
  <span class={`badge ${tone}`}>{children}</span>
);

/** A time in the reader's zone, with UTC on hover. Messages without an end have one far beyond what dates can hold. */
export const Time = ({ atMs, withDate = false }: { readonly atMs: number; readonly withDate?: boolean }): JSX.Element =>
  Number.isNaN(new Date(atMs).getTime()) ? (
    <span>–</span>
  ) : (
    <time dateTime={new Date(atMs).toISOString()} title={utcText(atMs)}>
      {withDate ? dayText(atMs) : timeText(atMs)}
    </time>
  );

interface CardProps {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
  readonly wide?: boolean;
}

export const Card = ({ title, aside, children, wide = false }: CardProps): JSX.Element => (
  <section class={wide ? "card wide" : "card"}>
    <header>
      <h2>{title}</h2>
      {aside}
    </header>
    {children}
  </section>
);

/** Stands where there is nothing to show, and says what to do. */
export const Empty = ({ title, children }: { readonly title: string; readonly children?: ComponentChildren }): JSX.Element => (
  <div class="empty">
    <strong>{title}</strong>
    {children}
  </div>
);

/** A command that a person copies into a terminal. */
export const CommandLine = ({ text }: { readonly text: string }): JSX.Element => (
  <div class="command">
    <code>{text}</code>
    <button type="button" class="quiet" onClick={() => void navigator.clipboard?.writeText(text)}>
      Copy
    </button>
  </div>
);

export const Figure = ({ label, value, note }: { readonly label: string; readonly value: string; readonly note?: string }): JSX.Element => (
  <div class="figure">
    <span class="label">{label}</span>
    <span class="value">{value}</span>
    {note === undefined ? null : <span class="note">{note}</span>}
  </div>
);

/** Part of a whole as a bar. `label` says for screen readers what the bar is of. */
export function Bar({ part, label }: { readonly part: number; readonly label: string }): JSX.Element {
  const percent = Math.round(Math.min(Math.max(part, 0), 1) * 100);
  return <progress class={percent > 90 ? "bad" : percent > 75 ? "warn" : ""} max={100} value={percent} aria-label={label} />;
}

/** Title of a column; with "number", its cells are numbers. */
export type Heading = string | readonly [title: string, kind: "number"];

interface ScrollTableProps {
  /** Name of the table for screen readers. */
  readonly label: string;
  readonly headings: readonly Heading[];
  /** Rows of the body. */
  readonly children: ComponentChildren;
}

/** A short table, which scrolls by itself where it is wider than its place. */
export const ScrollTable = ({ label, headings, children }: ScrollTableProps): JSX.Element => (
  <div class="scroll" tabIndex={0} role="region" aria-label={`${label}, scrolls`}>
    <table class="plain">
      <thead>
        <tr>
          {headings.map((heading) => {
            const [title, kind] = typeof heading === "string" ? [heading, ""] : heading;
            return (
              <th scope="col" class={kind} key={title}>
                {title}
              </th>
            );
          })}
        </tr>
      </thead>
      <tbody>{children}</tbody>
    </table>
  </div>
);
