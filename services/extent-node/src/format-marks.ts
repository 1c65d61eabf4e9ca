/**
 * Marks a format in the folder before its first record is written, at the level that brings the version, and not above: a release before starts on the
 * folder as long as nothing lies there that it can't read, and is refused from then on. The stream manager may hear of a level before this node.
 */
import { neededLevels, type Outcome, ok, refused } from "@stamp/base";
import { DiskError, raiseFormats, type World } from "@stamp/ports";

/** Formats that this process has marked, by its world. */
const marked = new WeakMap<object, Set<string>>();

/** Marks a format, durably when it resolves; `creation`: the record has a creation number. Refuses with `diskFailed` if the disk takes no mark. */
export async function markFormat(world: World, format: "extent" | "fragment", creation: unknown): Promise<Outcome<void>> {
  if (format === "extent" && creation === undefined) return ok();
  const level = creation === undefined ? neededLevels.fragments : neededLevels.creationNumbers;
  const known = marked.get(world) ?? new Set();
  marked.set(world, known);
  const mark = `${format} ${level}`;
  if (known.has(mark)) return ok();
  try {
    await raiseFormats(world, [format], level);
  } catch (error) {
    if (!(error instanceof DiskError)) throw error;
    return refused("unavailable", "diskFailed", `the disk takes no mark of the format ${format}: ${error.message}`);
  }
  known.add(mark);
  return ok();
}
