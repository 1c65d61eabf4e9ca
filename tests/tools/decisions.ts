/**
 * `node tests/tools/decisions.ts`: writes docs/decisions/README.md from the decisions themselves. Number and title are those of the first line;
 * rooms are the packages and services that the text names; "later" are the decisions with a higher number that refer to this one.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { layers } from "../tidy/layers.ts";
import { root } from "./commands.ts";

export const indexPath = "docs/decisions/README.md";

interface Decision {
  readonly file: string;
  readonly number: string;
  readonly title: string;
  readonly text: string;
}

const head = `# Decisions

Each page records one choice: the context, what was chosen, the alternatives, the consequences, and how it is tested.
A page is not rewritten when the code moves on; a later page refers to it, and says so when it replaces a part. The
current design is in [docs/design](../design/).

\`node tests/tools/decisions.ts\` makes this list. Rooms are the packages and services that a page names most.

| number | decision | rooms | later decisions that refer to it |
|---|---|---|---|
`;

export function decisionsIndex(folder: string): string {
  const decisions = globSync("[0-9]*.md", { cwd: folder })
    .sort()
    .map((file) => read(folder, file));
  const owners = ownersOfFiles();
  const rows = decisions.map((decision) => {
    const later = decisions.filter(
      ({ number, text }) => number > decision.number && new RegExp(`(?<![\\w+])${decision.number}\\b`).test(text),
    );
    const links = later.map(({ number, file }) => `[${number}](${file})`).join(", ");
    return `| [${decision.number}](${decision.file}) | ${status(decision)}${decision.title} | ${rooms(decision.text, owners)} | ${links} |`;
  });
  return `${head}${rows.join("\n")}\n`;
}

function read(folder: string, file: string): Decision {
  const text = readFileSync(join(folder, file), "utf8");
  const [, number = "", title = ""] = /^# (\d{4}): (.+)$/m.exec(text) ?? [];
  if (number !== basename(file).slice(0, 4)) throw new Error(`${file}: its first line is not "# ${basename(file).slice(0, 4)}: Title"`);
  return { file, number, title, text };
}

/** "Superseded by 0123." or "Superseded in part by 0123." at the beginning of a line. */
function status({ text }: Decision): string {
  const [, part = "", by = ""] = /^Superseded( in part)? by (\d{4})/m.exec(text) ?? [];
  return by === "" ? "" : `(superseded${part} by ${by}) `;
}

const roomsMax = 3;

/** The packages and services that are named most, at most three: by path, or by a file that only one of them has. */
function rooms(text: string, owners: ReadonlyMap<string, string>): string {
  const counts = new Map<string, number>();
  const count = (name: string): unknown => counts.set(name, (counts.get(name) ?? 0) + 1);
  for (const name of Object.keys(layers)) {
    for (const _ of text.matchAll(new RegExp(`(?<![\\w-])${name}/|@stamp/${name}\\b`, "g"))) count(name);
  }
  for (const [file] of text.matchAll(/(?<![\w/])[\w-]+(\.test)?\.ts\b/g)) count(owners.get(file) ?? "");
  counts.delete("");
  const names = [...counts].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return names.slice(0, roomsMax).join(", ");
}

/** Owner of each file of code whose name is unique. */
function ownersOfFiles(): ReadonlyMap<string, string> {
  const owners = new Map<string, string>();
  for (const path of globSync("{packages,services}/*/src/**/*.ts", { cwd: root })) {
    const file = basename(path);
    owners.set(file, owners.has(file) ? "" : (path.split("/")[1] ?? ""));
  }
  return owners;
}

if (import.meta.main) writeFileSync(join(root, indexPath), decisionsIndex(join(root, "docs/decisions")));
