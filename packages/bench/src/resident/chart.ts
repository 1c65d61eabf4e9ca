/** Chart of resident memory over time: a line for each process. */
import type { Sample } from "./memory.ts";

const [width, height] = [760, 360];
const [left, right, top, bottom] = [56, 200, 28, 36];
const colours = ["#0969da", "#cf222e", "#2da44e", "#9a6700", "#8250df", "#bf3989", "#1b7c83", "#57606a"];
const gridLines = 4;

const style = `
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .grid { stroke: #d1d9e0; } polyline { fill: none; stroke-width: 1.5; }
  @media (prefers-color-scheme: dark) { text { fill: #f0f6fc; } .grid { stroke: #3d444d; } }`;

const at = (value: number): string => value.toFixed(1);
/** A round number that is not below. */
const roundUp = (value: number): number => Math.ceil(value / 100) * 100;

/** An SVG document. `samples`: at least one. */
export function chartOf(samples: readonly Sample[]): string {
  const names = [...new Set(samples.flatMap(({ of }) => [...of.keys()]))];
  const most = roundUp(Math.max(1, ...samples.flatMap(({ of }) => [...of.values()].map(({ rss }) => rss))));
  const lastS = Math.max(1, samples.at(-1)?.atS ?? 1);
  const x = (atS: number): number => left + (atS / lastS) * (width - left - right);
  const y = (mib: number): number => height - bottom - (mib / most) * (height - top - bottom);
  const title = "Resident memory of each process under mixed load, in MiB";
  const grid = Array.from({ length: gridLines + 1 }, (_, i) => (most * i) / gridLines);
  const ends = names.map((name) => ({ name, rss: samples.at(-1)?.of.get(name)?.rss ?? 0 })).toSorted((a, b) => b.rss - a.rss);
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">`,
    `<title>${title}</title>`,
    `<style>${style}\n</style>`,
    ...grid.flatMap((mib) => [
      `<line class="grid" x1="${left}" x2="${width - right}" y1="${at(y(mib))}" y2="${at(y(mib))}"/>`,
      `<text x="${left - 8}" y="${at(y(mib) + 4)}" text-anchor="end">${mib.toFixed(0)}</text>`,
    ]),
    `<text x="${left}" y="${height - 12}">0 s</text>`,
    `<text x="${width - right}" y="${height - 12}" text-anchor="end">${lastS.toFixed(0)} s</text>`,
    ...ends.flatMap(({ name }, rank) => {
      const colour = colours[rank % colours.length];
      const points = samples.flatMap(({ atS, of }) => {
        const found = of.get(name);
        return found === undefined ? [] : [`${at(x(atS))},${at(y(found.rss))}`];
      });
      return [
        `<polyline stroke="${colour}" points="${points.join(" ")}"/>`,
        `<text x="${width - right + 12}" y="${top + 8 + rank * 20}" style="fill: ${colour}">${name}</text>`,
      ];
    }),
    "</svg>",
  ].join("\n")}\n`;
}
