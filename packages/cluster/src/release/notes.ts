/** Notes of a release: its part of the changelog. */

/** Returns the text under the version's heading; if it has none, what is unreleased. Throws Error if neither has a line. */
export function notesOf(changelog: string, version: string): string {
  const parts = changelog.split(/^## /m).slice(1);
  const titled = (title: string): string | undefined => parts.find((part) => part.split("\n")[0]?.split(" ")[0] === title);
  const part = titled(version) ?? titled("Unreleased");
  const text = part?.slice(part.indexOf("\n")).trim();
  if (text === undefined || text === "") throw new Error(`CHANGELOG.md has no line under "## ${version}" or "## Unreleased"`);
  return `# Stamp ${version}\n\n${text}\n`;
}
