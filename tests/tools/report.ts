/** What a long run of tests prints: one line per file, every failure in full at the end, and the sum as the last line. */
import type { TestEvent } from "node:test/reporters";
import { inOneLine, recordFailure } from "./failures.ts";

interface FileResult {
  passed: number;
  failed: number;
  skipped: number;
}

export interface Summary {
  passed: number;
  failed: number;
  skipped: number;
}

/** Follows the events of `run()` of node:test until they end. */
export async function report(
  events: AsyncIterable<TestEvent>,
  root: string,
  write: (text: string) => void,
  options: { readonly showOutput: boolean },
): Promise<Summary> {
  const files = new Map<string, FileResult>();
  const failures: string[] = [];
  const skips: string[] = [];
  const shorten = (file: string): string => (file.startsWith(`${root}/`) ? file.slice(root.length + 1) : file);
  const resultOf = (file: string): FileResult => {
    const held = files.get(file);
    if (held) return held;
    const made = { passed: 0, failed: 0, skipped: 0 };
    files.set(file, made);
    return made;
  };

  for await (const event of events) {
    if (event.type !== "test:pass" && event.type !== "test:fail") {
      if (event.type === "test:stderr" || (event.type === "test:stdout" && options.showOutput)) write(event.data.message);
      // The end of one file of a run with isolation.
      if (event.type === "test:summary" && event.data.file !== undefined) {
        const file = shorten(event.data.file);
        // A test may be defined in another file than the one that runs it: the counts here are of the run.
        const { passed, skipped, tests, todo } = event.data.counts;
        const failed = tests - passed - skipped - todo;
        const broke = failed > 0 || !event.data.success;
        const rest = `${failed > 0 ? `, ${failed} failed` : ""}${skipped > 0 ? `, ${skipped} skipped` : ""}`;
        write(`${broke ? "FAIL" : "ok  "} ${file} (${passed} passed${rest}, ${(event.data.duration_ms / 1000).toFixed(1)} s)\n`);
      }
      continue;
    }
    const data = event.data;
    const file = shorten(data.file ?? data.name);
    const result = resultOf(file);
    const where = data.line === undefined ? file : `${file}:${data.line}`;
    if (data.details.type === "suite" && event.type === "test:pass") continue;
    if (event.type === "test:fail") {
      // A suite or a test fails with its parts; only the part itself is counted and told.
      const error = event.data.details.error as Error & { failureType?: string; cause?: unknown };
      if (error.failureType === "subtestsFailed") continue;
      result.failed++;
      failures.push(`✖ ${data.name}\n  ${where}\n${indent(describe(error))}`);
      recordFailure({ title: data.name, where, error: inOneLine(messageOf(error)) });
    } else if (data.skip !== undefined && data.skip !== false) {
      result.skipped++;
      skips.push(`- ${data.name} (${where}): ${typeof data.skip === "string" && data.skip !== "" ? data.skip : "no reason given"}`);
    } else {
      result.passed++;
    }
  }

  const sum: Summary = { passed: 0, failed: 0, skipped: 0 };
  for (const result of files.values()) {
    sum.passed += result.passed;
    sum.failed += result.failed;
    sum.skipped += result.skipped;
  }
  if (skips.length > 0) write(`\nSkipped:\n${skips.join("\n")}\n`);
  if (failures.length > 0) write(`\nFailures:\n\n${failures.join("\n\n")}\n`);
  return sum;
}

function describe(error: Error & { cause?: unknown }): string {
  const cause = error.cause;
  if (cause instanceof Error) {
    const code = "code" in cause && cause.code !== undefined && cause.code !== "ERR_ASSERTION" ? ` [${String(cause.code)}]` : "";
    return (cause.stack ?? `${cause.name}: ${cause.message}`).concat(code);
  }
  return typeof cause === "string" ? cause : (error.stack ?? error.message);
}

/** Returns the message of what a test threw, without its stack. */
function messageOf(error: Error & { cause?: unknown }): string {
  const { cause } = error;
  if (cause instanceof Error) return `${cause.name}: ${cause.message}`;
  return typeof cause === "string" ? cause : error.message;
}

const indent = (text: string): string => text.replaceAll(/^/gm, "    ");
