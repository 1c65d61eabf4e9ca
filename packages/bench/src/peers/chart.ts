/**
 * Chart of the table of peers: for each case one bar, the cluster's throughput as a multiple of the emulator's on a logarithmic scale, and a
 * mark where it is to be.
 */
import { peerGoals } from "./reach.ts";
import { type Row, ratioOf } from "./table.ts";

const rowHeight = 24;
const left = 250;
const width = 760;
const right = width - 60;
const top = 40;
/** Least and largest ratio on the scale of the chart. */
const [least, most] = [0.1, 20];
const ticks = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20];

const style = `
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .note { font-size: 11px; fill: #59636e; }
  .ahead { fill: #2da44e; } .behind { fill: #cf222e; }
  .grid { stroke: #d1d9e0; } .one { stroke: #59636e; stroke-width: 1.5; } .wanted { stroke: #0969da; stroke-width: 3; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .note { fill: #9198a1; } .grid { stroke: #3d444d; } .one { stroke: #9198a1; } .wanted { stroke: #4493f8; }
  }`;

const xOf = (ratio: number): number =>
  left + ((Math.log(Math.min(most, Math.max(least, ratio))) - Math.log(least)) / (Math.log(most) - Math.log(least))) * (right - left);
const at = (value: number): string => value.toFixed(1);

/** Returns an SVG document; empty text if no row has a peer. */
export function chartOf(rows: readonly Row[]): string {
  const bars = rows.flatMap((row) => {
    const ratio = row.target === "cluster" ? ratioOf(row, rows) : undefined;
    return ratio === undefined ? [] : [{ name: row.case, ratio, wanted: peerGoals[row.case]?.ratio }];
  });
  if (bars.length === 0) return "";
  const height = top + bars.length * rowHeight + 16;
  const title = "Throughput of the cluster as a multiple of the emulator's";
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}">`,
    `<title>${title}</title>`,
    `<style>${style}\n</style>`,
    ...ticks.flatMap((tick) => [
      `<line class="${tick === 1 ? "one" : "grid"}" x1="${at(xOf(tick))}" x2="${at(xOf(tick))}" y1="${top - 6}" y2="${height - 12}"/>`,
      `<text class="note" x="${at(xOf(tick))}" y="${top - 12}" text-anchor="middle">${tick}×</text>`,
    ]),
    ...bars.flatMap(({ name, ratio, wanted }, index) => {
      const y = top + index * rowHeight;
      const [from, to] = [Math.min(xOf(1), xOf(ratio)), Math.max(xOf(1), xOf(ratio))];
      return [
        `<text x="${left - 10}" y="${y + 15}" text-anchor="end">${name}</text>`,
        `<rect class="${ratio < 1 ? "behind" : "ahead"}" x="${at(from)}" y="${y + 4}" width="${at(Math.max(1, to - from))}" height="14"/>`,
        `<text class="note" x="${right + 8}" y="${y + 15}">${ratio.toFixed(ratio < 10 ? 1 : 0)}×</text>`,
        ...(wanted === undefined
          ? []
          : [`<line class="wanted" x1="${at(xOf(wanted))}" x2="${at(xOf(wanted))}" y1="${y + 2}" y2="${y + 20}"/>`]),
      ];
    }),
    `</svg>`,
  ];
  return `${parts.join("\n")}\n`;
}
