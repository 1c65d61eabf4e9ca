/**
 * Commands of the guides: blocks fenced with ```sh in `docs/guides/*.md` and the README. A comment on the line before the fence says
 * when a block is not run as it stands:
 *
 *   <!-- until Ctrl-C -->       it goes on until somebody ends it; a test ends it after some seconds
 *   <!-- not run: REASON -->    a test can't run it
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./commands.ts";

export interface GuideBlock {
  /** Relative to the root. */
  readonly guide: string;
  /** Number of its first line of commands in the file, from 1 on. */
  readonly line: number;
  readonly commands: string;
  readonly how: "run" | "until Ctrl-C" | "not run";
  /** Why it is not run; else empty. */
  readonly reason: string;
}

export const guides = (): string[] => ["README.md", ...globSync("docs/guides/*.md", { cwd: root }).sort()];

export const textOf = (guide: string): string => readFileSync(join(root, guide), "utf8");

const fence = /^( *)```sh\n([\s\S]*?)^\1```$/gm;
const mark = /<!-- (until Ctrl-C|not run: (.+)) -->\n *$/;

export function blocksOf(guide: string): GuideBlock[] {
  const text = textOf(guide);
  return [...text.matchAll(fence)].map(({ 1: indent = "", 2: inside = "", index }) => {
    const [, how, reason = ""] = mark.exec(text.slice(0, index + indent.length)) ?? [];
    const commands = inside.replaceAll(new RegExp(`^${indent}`, "gm"), "");
    const line = text.slice(0, index).split("\n").length + 1;
    return { guide, line, commands, reason, how: how === undefined ? "run" : reason === "" ? "until Ctrl-C" : "not run" };
  });
}
