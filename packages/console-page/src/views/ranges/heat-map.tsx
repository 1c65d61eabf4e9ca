/** Load over key space (downwards) and time (to the right), drawn on a canvas: its cells are too many for elements. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { countText, rateText, timeText } from "../../format.ts";
import type { HeatMap as Heat, HeatBand } from "../../model.ts";
import { to } from "../../store.ts";
import { Time } from "../../ui.tsx";
import { cellAfter, drawnAt, type HeatCell, mostIn, shadeOf, widthOf } from "./shades.ts";

/** Height of a band; the style sheet has it, too. */
const bandHeight = 24;

const nameOf = ({ firstRange, lastRange, ranges }: HeatBand): string =>
  ranges === 1 ? firstRange : `${firstRange} … ${lastRange} (${countText(ranges)})`;

export function HeatMap({ heat }: { readonly heat: Heat }): JSX.Element {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [cell, setCell] = useState<HeatCell>();
  const { bands, columns } = heat;
  const most = mostIn(heat);
  useLayoutEffect(() => draw(canvas.current, heat, cell));
  useEffect(() => {
    const again = (): void => draw(canvas.current, heat, cell);
    const themed = new MutationObserver(again);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const sized = new ResizeObserver(again);
    if (canvas.current !== null) sized.observe(canvas.current);
    return () => {
      themed.disconnect();
      sized.disconnect();
    };
  }, [heat, cell]);
  const pointed = ({ offsetX, offsetY }: MouseEvent): void => {
    const width = canvas.current?.clientWidth ?? 1;
    const column = Math.floor((offsetX / width) * widthOf(heat));
    setCell({ band: Math.min(Math.floor(offsetY / bandHeight), bands.length - 1), column });
  };
  const pressed = (event: KeyboardEvent): void => {
    const next = cellAfter(event.key, cell ?? { band: 0, column: widthOf(heat) }, heat);
    const chosen = bands[cell?.band ?? -1];
    if (event.key === "Enter" && chosen !== undefined) location.hash = to("ranges", chosen.firstRange);
    if (next === undefined) return;
    event.preventDefault();
    setCell(next);
  };
  const busiest = bands.toSorted((a, b) => (b.loads.at(-1) ?? 0) - (a.loads.at(-1) ?? 0))[0];
  const now = busiest === undefined ? "" : `; now the busiest is ${nameOf(busiest)}, ${rateText(busiest.loads.at(-1) ?? null)}`;
  return (
    <figure class="heat">
      <figcaption>
        <span aria-live="polite">{cell === undefined ? "Point at a cell, or move with the arrow keys." : cellText(heat, cell)}</span>
        <span class="shades">
          0 <i /> {rateText(most)}
        </span>
      </figcaption>
      <div class="heat-grid">
        <ol>
          {bands.map((band) => (
            <li key={`${band.table} ${band.firstRange}`}>
              <a href={to("ranges", band.firstRange)} title={`${band.lowKey || "start"} … ${band.highKey || "end"}`}>
                {nameOf(band)}
              </a>
            </li>
          ))}
        </ol>
        <canvas
          ref={canvas}
          role="img"
          tabIndex={0}
          aria-label={`Requests per second of each range over time; the highest is ${rateText(most)}${now}`}
          onPointerMove={pointed}
          onPointerLeave={() => setCell(undefined)}
          onKeyDown={pressed}
        />
      </div>
      <div class="heat-times">
        {[columns[0], columns.at(-1)].map((atMs, end) => (atMs === undefined ? null : <Time atMs={atMs} key={end} />))}
      </div>
    </figure>
  );
}

function cellText({ bands, columns, columnMs, ...heat }: Heat, { band, column }: HeatCell): string {
  const one = bands[band];
  const atMs = (columns[0] ?? 0) + column * columnMs;
  const load = one?.loads[drawnAt({ bands, columns, columnMs, ...heat }).indexOf(column)];
  const told = load === undefined ? "nobody was asked" : load === null ? "not known" : rateText(load);
  return one === undefined ? "" : `${timeText(atMs)}, ${nameOf(one)}: ${told}`;
}

const colourOf = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function draw(canvas: HTMLCanvasElement | null, heat: Heat, cell: HeatCell | undefined): void {
  const context = canvas?.getContext("2d");
  if (canvas === null || !context) return;
  const { bands } = heat;
  const scale = devicePixelRatio || 1;
  canvas.style.setProperty("height", `${bands.length * bandHeight}px`);
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(bands.length * bandHeight * scale);
  const [width, height] = [canvas.width / Math.max(widthOf(heat), 1), bandHeight * scale];
  const [most, at] = [mostIn(heat), drawnAt(heat)];
  context.fillStyle = colourOf("two");
  for (const [row, { loads }] of bands.entries()) {
    for (const [index, load] of loads.entries()) {
      if (load === null) continue;
      context.globalAlpha = shadeOf(load, most);
      const left = Math.floor((at[index] ?? 0) * width);
      context.fillRect(left, row * height, Math.ceil(width), height - scale);
    }
  }
  if (cell === undefined) return;
  context.globalAlpha = 1;
  context.strokeStyle = colourOf("text");
  context.lineWidth = scale * 1.5;
  context.strokeRect(cell.column * width, cell.band * height, Math.max(width, 3 * scale), height - scale);
}
