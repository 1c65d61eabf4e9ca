/** Subjects of commits: `room: imperative` or `room, room: imperative`, at most 72 characters (CONTRIBUTING.md). */
const subject = /^(?=.{10,72}$)[a-z0-9-]+(, [a-z0-9-]+)*: \S/;

/** The first commit whose subject is checked brought this line along. A search finds it under any hash, also after the history was rewritten. */
export const firstChecked = ["log", "--reverse", "--format=%H", "-Sconst subjectsSince", "--", "tests/tools/check.ts"];

/** Subjects that are not as they should be, of lines `hash subject`. */
export function wrongSubjects(log: string): string[] {
  return log.split("\n").filter((line) => line !== "" && !subject.test(line.slice(line.indexOf(" ") + 1)));
}
