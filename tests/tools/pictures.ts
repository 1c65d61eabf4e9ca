/**
 * `node tests/tools/pictures.ts`: draws docs/pictures/<name>.svg from docs/pictures/<name>.json. Units are pixels; y grows downwards. An arrow
 * with `below` leaves downwards, runs that far below its ends, and arrives upwards.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./commands.ts";

interface Picture {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly layers: readonly { readonly y: number; readonly height: number; readonly name: string; readonly note: string }[];
  readonly boxes: readonly {
    readonly x: number;
    readonly y: number;
    readonly width: number;
    readonly height: number;
    readonly text: string;
    readonly note?: string;
    readonly kind?: "outside";
  }[];
  readonly arrows: readonly {
    readonly from: readonly [number, number];
    readonly to: readonly [number, number];
    readonly text: string;
    readonly below?: number;
    /** Where the text begins; by default beside the middle of the arrow. */
    readonly at?: readonly [number, number];
  }[];
}

const style = `
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .note { font-size: 11px; fill: #59636e; }
  .name { font-weight: 600; }
  .layer { fill: #f6f8fa; stroke: #d1d9e0; }
  .box { fill: #ddf4ff; stroke: #0969da; }
  .outside { fill: #ffffff; stroke: #59636e; stroke-dasharray: 4 3; }
  .arrow { fill: none; stroke: #59636e; stroke-width: 1.4; marker-end: url(#head); }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; } .note { fill: #9198a1; } .layer { fill: #151b23; stroke: #3d444d; }
    .box { fill: #121d2f; stroke: #4493f8; } .outside { fill: #0d1117; stroke: #9198a1; } .arrow { stroke: #9198a1; }
  }`;

const escaped = (text: string): string => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

export function drawn(picture: Picture): string {
  const { title, width, height, layers, boxes, arrows } = picture;
  const text = (x: number, y: number, content: string, classes = "", anchor = "middle"): string =>
    `<text x="${x}" y="${y}" text-anchor="${anchor}"${classes ? ` class="${classes}"` : ""}>${escaped(content)}</text>`;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}\n</style>`,
    `<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="#59636e"/></marker></defs>`,
    ...layers.flatMap(({ y, height: high, name, note }) => [
      `<rect class="layer" x="8" y="${y}" width="${width - 16}" height="${high}" rx="6"/>`,
      text(20, y + 24, name, "name", "start"),
      ...note.split(": ").map((line, at) => text(20, y + 44 + 16 * at, line, "note", "start")),
    ]),
    ...boxes.flatMap(({ x, y, width: wide, height: high, text: name, note, kind }) => [
      `<rect class="${kind ?? "box"}" x="${x}" y="${y}" width="${wide}" height="${high}" rx="4"/>`,
      text(x + wide / 2, y + high / 2 + (note === undefined ? 5 : -3), name),
      ...(note === undefined ? [] : [text(x + wide / 2, y + high / 2 + 15, note, "note")]),
    ]),
    ...arrows.flatMap(({ from: [x1, y1], to: [x2, y2], text: label, below, at }) => {
      const path = below === undefined ? `M${x1} ${y1}L${x2} ${y2}` : `M${x1} ${y1}V${y1 + below}H${x2}V${y2}`;
      const [x, y] = at ?? [(x1 + x2) / 2 + 6, (y1 + y2) / 2 + 4];
      return [`<path class="arrow" d="${path}"/>`, ...(label === "" ? [] : [text(x, y, label, "note", "start")])];
    }),
    "</svg>",
  ];
  return `${parts.join("\n")}\n`;
}

/** Path of each picture, relative to the root, and what it should hold. */
export function pictures(): readonly (readonly [path: string, svg: string])[] {
  return globSync("docs/pictures/*.json", { cwd: root }).map((path) => [
    path.replace(/json$/, "svg"),
    drawn(JSON.parse(readFileSync(join(root, path), "utf8")) as Picture),
  ]);
}

if (import.meta.main) for (const [path, svg] of pictures()) writeFileSync(join(root, path), svg);
