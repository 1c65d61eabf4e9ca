/** Writes the measured part of docs/measurements/peers.md, between its two marks, and the chart beside it. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const beginMark = "<!-- begin: written by `stamp bench --write` -->";
export const endMark = "<!-- end -->";

/** Returns the page with what stood between the mark and the end mark behind it replaced. Throws without the marks. */
export function withMeasured(page: string, measured: string, mark: string = beginMark): string {
  const begin = page.indexOf(mark);
  const end = page.indexOf(endMark, begin);
  if (begin < 0 || end < 0) throw new Error(`the page of measurements needs the lines ${mark} and ${endMark}`);
  return `${page.slice(0, begin + mark.length)}\n\n${measured.trim()}\n\n${page.slice(end)}`;
}

/** Returns the files that were written. */
export function writePage(root: string, measured: string, chart: string): readonly string[] {
  const page = join(root, "docs/measurements/peers.md");
  const picture = join(root, "docs/measurements/peers.svg");
  writeFileSync(page, withMeasured(readFileSync(page, "utf8"), measured));
  if (chart === "") return [page];
  writeFileSync(picture, chart);
  return [page, picture];
}
