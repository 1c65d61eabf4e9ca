/** Rules about tests: which part of CI runs a slow one, and what decides the result of a quick one. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Source } from "./tidy.ts";

const table = "tests/tools/ci-parts.ts";
/** An assertion that a moment of the machine's clock is not far behind another one. */
const judgedWallTime = /\bassert\b.*\b(performance|Date)\.now\(\) - [\w.]+ <|\bassert\b.*\b(performance|Date)\.now\(\) < [\w.]+ \+/;

export function testFiles(root: string, sources: readonly Source[]): string[] {
  const parts = existsSync(join(root, table)) ? readFileSync(join(root, table), "utf8") : "";
  return sources.flatMap(({ path, text }) => {
    if (path.endsWith(".slow.ts")) {
      const times = parts.split(`"${path}"`).length - 1;
      return times === 1 ? [] : [`${path}: slow tests: ${times} parts of ${table} run it; one does`];
    }
    if (!path.endsWith(".test.ts")) return [];
    return text.split("\n").flatMap((line, at) => (judgedWallTime.test(line) ? [`${path}:${at + 1}: wall time decides a test`] : []));
  });
}
