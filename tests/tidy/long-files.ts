/** The size of source files: none is longer than a reader takes in at once. */
export const linesMax = 450;

export function longFiles(sources: readonly { readonly path: string; readonly text: string }[]): string[] {
  return sources.flatMap(({ path, text }) => {
    const lines = text.split("\n").length - 1;
    return lines > linesMax ? [`${path}: size: ${lines} lines; at most ${linesMax}`] : [];
  });
}
