/** Arithmetic of the heat map: what is drawn where, and how dark. Pure. */
import type { HeatMap } from "../../model.ts";

/** A place in the map: row and column, both from 0. */
export interface HeatCell {
  readonly band: number;
  /** Number of columns before it, also of times at which nobody was asked. */
  readonly column: number;
}

/** Returns the number of columns from the first to the last, with those of times at which nobody was asked. */
export function widthOf({ columns, columnMs }: HeatMap): number {
  const [first, last] = [columns[0], columns.at(-1)];
  return first === undefined || last === undefined ? 0 : Math.round((last - first) / columnMs) + 1;
}

/** Returns the column that each of the map's columns is drawn in. */
export const drawnAt = ({ columns, columnMs }: HeatMap): number[] =>
  columns.map((atMs) => Math.round((atMs - (columns[0] ?? 0)) / columnMs));

export const mostIn = ({ bands }: HeatMap): number =>
  bands.reduce((most, { loads }) => loads.reduce<number>((more, load) => Math.max(more, load ?? 0), most), 0);

const faintest = 0.05;

/** Returns the opacity of a load. Its steps are those of a logarithm: beside one hot range the others are seen still. */
export const shadeOf = (load: number, most: number): number =>
  most <= 0 ? faintest : faintest + (1 - faintest) * (Math.log1p(Math.max(load, 0)) / Math.log1p(most));

const moves: Readonly<Record<string, readonly [bands: number, columns: number]>> = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
};

/** Returns the cell that a key of the keyboard leads to, inside the map; undefined: the key leads nowhere. */
export function cellAfter(key: string, { band, column }: HeatCell, map: HeatMap): HeatCell | undefined {
  const move = moves[key];
  if (move === undefined) return undefined;
  const within = (at: number, count: number): number => Math.min(Math.max(at, 0), Math.max(count - 1, 0));
  return { band: within(band + move[0], map.bands.length), column: within(column + move[1], widthOf(map)) };
}
