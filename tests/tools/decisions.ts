/**
 * `node tests/tools/decisions.ts`: writes docs/decisions/README.md from the decisions themselves. Number and title are those of the first line.
 * A line "Status: accepted. Room: stream layer." says how the page stands and under which heading it is listed; "Status: superseded by 0123." or
 * "superseded in part by 0123." is told in the list.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { root } from "./commands.ts";

export const indexPath = "docs/decisions/README.md";

interface Decision {
  readonly file: string;
  readonly number: string;
  readonly title: string;
  readonly status: string;
  readonly room: string;
}

const head = `# Decisions

A page is for a choice that a newcomer would undo: the context, what was chosen, the alternatives and the consequences;
[faults.md](../faults.md) names the tests of its rules. The third line has the status (accepted, superseded by another)
and the room. A choice that can be told in two sentences stands in a page of [docs/design](../design/). When a page is
folded into a design page, it goes, and every reference to it; history keeps it.

\`node tests/tools/decisions.ts\` makes this list.
`;

export function decisionsIndex(folder: string): string {
  const decisions = globSync("[0-9]*.md", { cwd: folder })
    .sort()
    .map((file) => read(folder, file));
  const rooms = [...new Set(decisions.map(({ room }) => room))].sort();
  const sections = rooms.map((room) => {
    const rows = decisions.filter((decision) => decision.room === room).map(row);
    return `\n## ${room[0]?.toUpperCase()}${room.slice(1)}\n\n${rows.join("\n")}\n`;
  });
  return `${head}${sections.join("")}`;
}

function row({ number, file, title, status }: Decision): string {
  return `- [${number}](${file}): ${title}${status === "accepted" ? "" : ` (${status})`}`;
}

function read(folder: string, file: string): Decision {
  const text = readFileSync(join(folder, file), "utf8");
  const [, number = "", title = ""] = /^# (\d{4}): (.+)$/m.exec(text) ?? [];
  if (number !== basename(file).slice(0, 4)) throw new Error(`${file}: its first line is not "# ${basename(file).slice(0, 4)}: Title"`);
  const [, status = "accepted", room = "not sorted yet"] =
    /^Status: (accepted|superseded(?: in part)? by \d{4})\. Room: ([^.]+)\.$/m.exec(text) ?? [];
  return { file, number, title, status, room };
}

if (import.meta.main) writeFileSync(join(root, indexPath), decisionsIndex(join(root, "docs/decisions")));
