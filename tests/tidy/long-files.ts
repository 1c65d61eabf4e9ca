/** The size of source files. What is longer than a reader takes in at once is listed here with its ceiling, which only falls. */
const linesMax = 450;

/** Files that are longer, each with the most lines that it may have. One that became short is taken off. */
const longer: Readonly<Record<string, number>> = {
  "packages/range-partition/src/range-partition.ts": 600,
};

export function longFiles(sources: readonly { readonly path: string; readonly text: string }[]): string[] {
  const lines = new Map(sources.map(({ path, text }) => [path, text.split("\n").length - 1]));
  const tooLong = [...lines].flatMap(([path, count]) => {
    const max = longer[path] ?? linesMax;
    return count > max ? [`${path}: size: ${count} lines; at most ${max}`] : [];
  });
  const short = Object.keys(longer).filter((path) => (lines.get(path) ?? 0) <= linesMax);
  return [...tooLong, ...short.map((path) => `tests/tidy/long-files.ts: size: ${path} is no longer long`)];
}
