/**
 * A table of any length: only the rows in sight are in the document. Rows have one height, so that the place of each is known. When the end
 * comes near, the table asks for more.
 */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const rowHeight = 40;
const beyond = 10;

export interface Column<T> {
  readonly title: string;
  /** Width in the notation of CSS grids. */
  readonly width: string;
  readonly cell: (row: T) => ComponentChildren;
  readonly isNumber?: boolean;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** Called when the last rows come into sight. */
  readonly onEnd?: () => void;
}

export function VirtualTable<T>({ label, columns, rows, keyOf, onEnd }: TableProps<T>): JSX.Element {
  const holder = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const [shown, setShown] = useState(30);
  const look = (): void => {
    const { scrollTop = 0, clientHeight = 0 } = holder.current ?? {};
    setFirst(Math.max(Math.floor(scrollTop / rowHeight) - beyond, 0));
    setShown(Math.ceil(clientHeight / rowHeight) + 2 * beyond);
  };
  useLayoutEffect(() => {
    const parent = holder.current;
    if (parent === null) return;
    const sized = new ResizeObserver(look);
    sized.observe(parent);
    return () => sized.disconnect();
  }, []);
  const isNearEnd = first + shown >= rows.length;
  useEffect(() => {
    if (isNearEnd) onEnd?.();
  }, [isNearEnd, rows.length]);
  const body = useRef<HTMLDivElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  // Set as properties: the page allows no style inside its HTML.
  useLayoutEffect(() => {
    body.current?.style.setProperty("height", `${rows.length * rowHeight}px`);
    body.current?.style.setProperty("--first", `${first * rowHeight}px`);
    grid.current?.style.setProperty("--columns", columns.map(({ width }) => width).join(" "));
  });
  return (
    <section class="table" ref={holder} onScroll={look} tabIndex={0} aria-label={`${label}, scrolls`}>
      <div role="table" aria-label={label} aria-rowcount={rows.length + 1} ref={grid}>
        <div role="row" class="row head" aria-rowindex={1}>
          {columns.map(({ title, isNumber }) => (
            <span role="columnheader" key={title} class={isNumber ? "number" : ""}>
              {title}
            </span>
          ))}
        </div>
        <div role="rowgroup" class="rows" ref={body}>
          <div role="presentation" class="window">
            {rows.slice(first, first + shown).map((row, index) => (
              <div role="row" class="row" key={keyOf(row)} aria-rowindex={first + index + 2}>
                {columns.map(({ title, cell, isNumber }) => (
                  <span role="cell" key={title} class={isNumber ? "number" : ""}>
                    {cell(row)}
                  </span>
                ))}
              </div>
            ))}
          </div>
        </div>
      </div>
    </section>
  );
}
