/**
 * Prints for all commands. Words for people go through here, and the commands in them are written so that they reach the stamp, or the location
 * service, that was asked. Imports nothing, because help and a wrong command line load it.
 *
 * Invariant: nothing else in this package writes words to standard output or standard error (say.test.ts).
 */

let forPlace = (text: string): string => text;

/** Sets how commands in words are written from now on. */
export function adviseBy(rewrite: (text: string) => string): void {
  forPlace = rewrite;
}

/** Returns the text with its commands written for the stamp that was asked. */
export const advised = (text: string): string => forPlace(text);

/** Prints the answer of a command. */
export const say = (text = ""): void => console.log(advised(text));

/** Prints what is not the answer: errors, warnings, progress. */
export const warn = (text: string): void => console.error(advised(text));

/** Prints text that a tool reads, as it is. */
export const sayRaw = (text: string): void => console.log(text);
