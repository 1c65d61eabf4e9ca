/**
 * Prints for all commands. Words for people go through here, and the commands in them are written so that they reach the stamp, or the location
 * service, that was asked. Imports nothing of the stamp, because help and a wrong command line load it.
 *
 * Invariant: nothing else in this package writes words to standard output or standard error (say.test.ts).
 */
import { once } from "node:events";
import { printableLines } from "./printable.ts";

let forPlace = (text: string): string => text;

/** Sets how commands in words are written from now on. */
export function adviseBy(rewrite: (text: string) => string): void {
  forPlace = rewrite;
}

/** Returns the text with its commands written for the stamp that was asked. */
export const advisedText = (text: string): string => forPlace(text);

/** Prints the answer of a command. What may hold text of others, as all words may, moves no cursor. */
export const say = (text = ""): void => console.log(advisedText(printableLines(text)));

/** Prints what is not the answer: errors, warnings, progress. */
export const warn = (text: string): void => console.error(advisedText(printableLines(text)));

/** Prints text for a tool, unchanged. */
export const sayRaw = (text: string): void => console.log(text);

/** Most output that waits for a reader, in bytes. */
const unreadMax = 1_048_576;

/** Prints a line that is elsewhere, too. Leaves it out while nobody reads, so that the process holds no more and goes on. */
export function sayUnlessUnread(line: string, output: Pick<NodeJS.WriteStream, "writableLength" | "write"> = process.stdout): void {
  if (output.writableLength < unreadMax) output.write(`${printableLines(line)}\n`);
}

/**
 * Prints text as it is, for a command that goes on until Ctrl-C: waits for a slow reader, and ends the process when the reader has gone
 * (`| head`).
 */
export async function sayAtPace(text: string): Promise<void> {
  const { stdout } = process;
  if (!stdout.listeners("error").includes(endQuietly)) stdout.on("error", endQuietly);
  if (!stdout.write(`${text}\n`)) await once(stdout, "drain");
}

function endQuietly(error: NodeJS.ErrnoException): never {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
}

/** Returns the size of the terminal in characters; undefined: standard output is none. */
export function screenSize(): { readonly rows: number; readonly columns: number } | undefined {
  const { isTTY, rows, columns } = process.stdout;
  return isTTY ? { rows, columns } : undefined;
}

/** Shows a text in place of what the terminal shows. What is wider or higher than the terminal is left out. */
export const showOnScreen = (text: string, { rows, columns }: { readonly rows: number; readonly columns: number }): void => {
  const lines = advisedText(text)
    .split("\n")
    .slice(0, rows - 1)
    .map((line) => `${line.slice(0, columns)}\u001b[K\n`);
  process.stdout.write(`\u001b[H${lines.join("")}\u001b[J`);
};
