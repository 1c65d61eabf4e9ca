/**
 * Texts that are signed, as lines. A signature covers bytes: if two requests had one text, whoever holds a signed request could send the
 * other one. So a text is refused that could be read in more than one way.
 *
 * Invariants:
 * - A line has no line break, so the text has the lines that it was made of. Other control characters separate nothing: names of blobs, and
 *   with them prefixes and delimiters of lists, may have some.
 * - A name in front of a colon is a token (RFC 9110, 5.6.2), so the first colon of its line ends it.
 * - A name that a SAS binds stands once, in the SAS and in the request, so no value replaces another. In any query the parameters that
 *   somebody reads stand once (single-parameters.ts); `include` is a set, however it is written.
 */
import { type Parsed, parsed, rejected } from "../rest-error.ts";

const refused = (detail: string): Parsed<never> => rejected("AuthenticationFailed", { AuthenticationErrorDetail: detail });

const token = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/i;

/** True if the text can be signed as one line. */
const isOneLine = (text: string): boolean => !/[\r\n]/.test(text);

/** Returns the text that is signed. Refuses lines that are more than one. */
export function signedText(lines: readonly string[]): Parsed<string> {
  const broken = lines.find((line) => !isOneLine(line));
  if (broken === undefined) return parsed(lines.join("\n"));
  const shown = JSON.stringify(broken.replace(/:.*/s, ":…").slice(0, 100));
  return refused(`A line break can't be signed: leave it out of the header or parameter ${shown}.`);
}

/** Refuses names that are no tokens. `where`: what has the names. */
export function checkTokens(names: Iterable<string>, where: string): Parsed<void> {
  for (const name of names) {
    if (!token.test(name)) return refused(`${where}: ${JSON.stringify(name.slice(0, 100))} is no name of a header or parameter.`);
  }
  return parsed(undefined);
}

/** Refuses names that are no tokens, or that the list has more than once. */
export function checkNames(names: readonly string[], where: string): Parsed<void> {
  const repeated = names.find((name, i) => names.findIndex((other) => other.toLowerCase() === name.toLowerCase()) < i);
  return repeated === undefined ? checkTokens(names, where) : refused(`${where}: ${repeated} stands there more than once.`);
}
