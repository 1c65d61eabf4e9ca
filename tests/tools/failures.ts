/**
 * Failed tests of a run in CI. Each process that runs tests appends its failures to the file named by CI_FAILURES, one JSON object
 * a line, as soon as a test fails: a part that is ended for its time has told what failed before. `ci.ts` shows them at its very end.
 * The name does not begin with STAMP_: the command line warns of such a variable if it is no setting.
 */
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";

export interface Failure {
  readonly title: string;
  /** File and line of the test, from the root of the repository. */
  readonly where: string;
  /** Message of the error, in one line. */
  readonly error: string;
}

/** A part of CI that failed, and what is known about why. */
export interface FailedPart {
  readonly title: string;
  readonly failures: readonly Failure[];
  /** What the part printed. It is searched when no failed test is known. */
  readonly output: string;
}

const variable = "CI_FAILURES";
const errorCharsMax = 300;
/** Most failed tests that are shown of one part, and most telling lines of a part without failed tests. */
const shownMax = 30;
const linesMax = 10;
/** Lines that say what failed, of the simulator, the drills, the type checker and of `stamp bench turns`. */
const telling = /\bFAIL(ED)?\b|BROKEN|NOT CAUGHT|NOT caught|error TS\d|✖|ABOVE|^ended after \d/;

/** Appends a failure to the file of this run. Does nothing outside CI. */
export function recordFailure(failure: Failure): void {
  const path = process.env[variable];
  if (path !== undefined && path !== "") appendFileSync(path, `${JSON.stringify(failure)}\n`);
}

/** Environment in which a process records its failures in this file. */
export const recordingIn = (path: string): Readonly<Record<string, string>> => ({ [variable]: path });

/** Returns the failures in a file, by default the one of this process, and deletes it. */
export function takeFailures(path: string | undefined = process.env[variable]): Failure[] {
  if (path === undefined || !existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n");
  rmSync(path);
  return lines.filter((line) => line !== "").map((line) => JSON.parse(line) as Failure);
}

/** Returns the first lines of a message as one line of bounded length. */
export function inOneLine(message: string): string {
  const text = message
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .join(" | ");
  return text.length <= errorCharsMax ? text : `${text.slice(0, errorCharsMax)} …`;
}

/** Returns what to print at the end of CI: each failed part, and in it each failed test. Empty if nothing failed. */
export function failuresText(parts: readonly FailedPart[]): string {
  if (parts.length === 0) return "";
  return ["Failed:", ...parts.flatMap(partLines), ""].join("\n");
}

function partLines({ title, failures, output }: FailedPart): string[] {
  const shown = failures
    .slice(0, shownMax)
    .flatMap((failure) => [`  ✖ ${failure.title}`, `    ${failure.where}`, `    ${inOneLine(failure.error)}`]);
  if (failures.length > shownMax) shown.push(`  … and ${failures.length - shownMax} more`);
  if (failures.length === 0) shown.push(...tellingLines(output).map((line) => `  ${line}`));
  return [`== ${title}`, ...shown];
}

/** Returns the lines that name a failure, each with the line behind it, or else the last lines. */
function tellingLines(output: string): string[] {
  const lines = output
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => line.slice(0, errorCharsMax));
  const found = lines.filter((line, at) => telling.test(line) || telling.test(lines[at - 1] ?? "")).slice(0, 2 * linesMax);
  return found.length > 0 ? found : lines.slice(-linesMax);
}
