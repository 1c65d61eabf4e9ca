/** Lists that come in pages: what was loaded, what failed, and what to do then. */
import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { countText } from "./format.ts";
import type { Page } from "./model.ts";
import { nextPage } from "./next-page.ts";
import { Empty } from "./ui.tsx";

export interface Pages<T> {
  readonly items: readonly T[];
  readonly isLoading: boolean;
  readonly isWhole: boolean;
  /** Why the last page did not come; empty if it did. */
  readonly problem: string;
  readonly more: () => void;
  readonly reload: () => void;
}

/** Loads the first page now, and the next one whenever `more` is called. `key`: another list begins when it changes. */
export function usePages<T>(load: (after: string) => Promise<Page<T>>, key: string): Pages<T> {
  const [state, setState] = useState<{ items: readonly T[]; next: string | null; problem: string; isLoading: boolean }>({
    items: [],
    next: "",
    problem: "",
    isLoading: true,
  });
  const round = useRef(0);
  const ask = useCallback(
    (after: string, kept: readonly T[], shown?: readonly T[]): void => {
      const mine = ++round.current;
      setState(({ items }) => ({ items: shown ?? items, next: after, problem: "", isLoading: true }));
      nextPage(load, after, () => mine === round.current).then(
        ({ items, next }) => {
          if (mine === round.current) setState({ items: [...kept, ...items], next, problem: "", isLoading: false });
        },
        (error: unknown) => {
          if (mine === round.current)
            setState(({ items }) => ({ items, next: after, problem: (error as Error).message, isLoading: false }));
        },
      );
    },
    [key],
  );
  // The rows stay until the first page is there: with them would go what a person has open in one.
  const reload = useCallback(() => ask("", []), [ask]);
  useEffect(() => {
    ask("", [], []);
    return () => {
      round.current++;
    };
  }, [ask]);
  const more = (): void => {
    if (!state.isLoading && state.problem === "" && state.next !== null) ask(state.next, state.items);
  };
  return { ...state, isWhole: state.next === null, more, reload };
}

export type Loaded<T> = { readonly value?: T; readonly problem?: string };

/** Loads one thing now, and again when `round` changes. */
export function useLoaded<T>(load: () => Promise<T>, round = 0): Loaded<T> {
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
  }, [round]);
  return loaded;
}

export interface Polled<T> {
  /** The newest answer; undefined: there is none yet. */
  readonly value: T | undefined;
  /** Why the last answer did not come; empty if it did. */
  readonly problem: string;
  readonly askNow: () => void;
}

/** Asks now, and again `everyMs` after each answer, until the view is left. `took`: called with each answer. */
export function usePolled<T>(load: () => Promise<T>, everyMs: number, took: (value: T) => void = () => {}): Polled<T> {
  const [value, setValue] = useState<T>();
  const [problem, setProblem] = useState("");
  const [round, setRound] = useState(0);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isWanted = true;
    const ask = (): void => {
      load()
        .then(
          (now) => {
            if (!isWanted) return;
            took(now);
            setValue(() => now);
            setProblem("");
          },
          (error: unknown) => isWanted && setProblem((error as Error).message),
        )
        .finally(() => {
          if (isWanted) timer = setTimeout(ask, everyMs);
        });
    };
    ask();
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [round]);
  return { value, problem, askNow: () => setRound((before) => before + 1) };
}

interface ListStateProps {
  readonly pages: Pages<unknown>;
  readonly what: string;
  readonly empty: ComponentChildren;
  readonly children: ComponentChildren;
}

/** The list with its state: how many there are, what is missing, or why nothing is shown. */
export function ListState({ pages, what, empty, children }: ListStateProps): JSX.Element {
  const { items, isLoading, isWhole, problem, reload } = pages;
  const count = `${countText(items.length)} ${what}${isWhole ? "" : ", more as you scroll"}`;
  return (
    <>
      <div class="bar" aria-live="polite">
        <span>{isLoading && items.length === 0 ? `Loading ${what}…` : count}</span>
        <button type="button" onClick={reload}>
          Load again
        </button>
      </div>
      {problem === "" ? null : (
        <div class="notice bad" role="alert">
          {problem}.{" "}
          <button type="button" onClick={reload}>
            Try again
          </button>
        </div>
      )}
      {items.length > 0 ? children : isLoading || problem !== "" ? null : <Empty title={`No ${what}`}>{empty}</Empty>}
    </>
  );
}
