/** Finds the word that somebody may have meant. Imports nothing, so that a wrong command line loads nothing else. */

/** Words of other programs, with the words that `stamp` has for them. */
const meant: Readonly<Record<string, string>> = {
  backup: "metadata",
  version: "--version",
  start: "up",
  stop: "down",
  ps: "status",
  top: "status",
  check: "fsck",
};
/** Share of changed letters from which on a word is another word and not a slip. */
const changedShareMax = 0.5;

/** Returns the word nearest to `text`; undefined if none is near. */
export function nearest(text: string, words: readonly string[]): string | undefined {
  const known = meant[text];
  if (known !== undefined && (known.startsWith("-") || words.includes(known))) return known;
  const ranked = words
    .map((word) => ({ word, changes: text.length > 2 && word.startsWith(text) ? 0 : changesBetween(text, word) }))
    .toSorted((one, other) => one.changes - other.changes);
  const [best] = ranked;
  return best !== undefined && best.changes <= Math.max(1, Math.floor(text.length * changedShareMax)) ? best.word : undefined;
}

/** Letters to insert, delete or exchange. */
function changesBetween(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...one].entries()) {
    const next = [at + 1];
    for (const [column, other_] of [...other].entries())
      next.push(Math.min((row[column] ?? 0) + (letter === other_ ? 0 : 1), (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    row = next;
  }
  return row.at(-1) ?? 0;
}
