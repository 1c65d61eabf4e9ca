/**
 * Places in the sources for stacks of a bundled program. Node could do so by itself (`--enable-source-maps`), but reads the map of each file
 * when it loads the file, and keeps it. Here the map is read when a stack is logged, and forgotten a minute later.
 */
import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Place of a frame: `file:///stamp/.tools/bundle/0f/extent-node.mjs:12:345`. */
const place = /file:\/\/[^\s():]+\.mjs:\d+:\d+/g;
const keptForMs = 60_000;

const maps = new Map<string, SourceMap | undefined>();

/** Returns the stack with places in sources where their file has a source map beside it. */
export function withSourcePlaces(stack: string): string {
  return stack.replaceAll(place, (text) => {
    const [, url = "", line, column] = /^(.*):(\d+):(\d+)$/.exec(text) ?? [];
    const file = fileURLToPath(url);
    const entry = mapOf(file)?.findEntry(Number(line) - 1, Number(column) - 1);
    if (entry === undefined || !("originalSource" in entry)) return text;
    return `${resolve(dirname(file), entry.originalSource)}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  });
}

function mapOf(file: string): SourceMap | undefined {
  if (!maps.has(file)) {
    maps.set(file, read(file));
    setTimeout(() => maps.delete(file), keptForMs).unref();
  }
  return maps.get(file);
}

function read(file: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")));
  } catch {
    return undefined;
  }
}
