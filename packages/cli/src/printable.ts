/**
 * Text that came from elsewhere (names, logs, keys, messages of errors), for a terminal. Control characters could move its cursor or hide a
 * part of a line, marks of direction turn the order of what is read. Pure.
 */

const asEscape = (each: string): string => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** Returns one line: newlines are escaped, too. Tabs stay. */
export const printable = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal
  text.replaceAll(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, asEscape);

/** Returns the lines of a text. */
export const printableLines = (text: string): string => text.split("\n").map(printable).join("\n");

/** Returns JSON of the same value: JSON itself escapes the first 32 characters only. */
export const printableJson = printableLines;
