/** Writes the measured part of docs/measurements/peers.md, between its two marks, and the chart beside it. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const beginMark = "<!-- begin: written by `stamp bench --write` -->";
export const endMark = "<!-- end -->";

/** Returns the page with what stood between the marks replaced. Throws without the marks. */
export function withMeasured(page: string, measured: string): string {
  const [begin, end] = [page.indexOf(beginMark), page.indexOf(endMark)];
  if (begin < 0 || end < begin) throw new Error(`docs/measurements/peers.md needs the lines ${beginMark} and ${endMark}`);
  return `${page.slice(0, begin + beginMark.length)}\n\n${measured.trim()}\n\n${page.slice(end)}`;
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
