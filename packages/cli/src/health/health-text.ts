/** Text of `stamp health` for people. */
import { type Health, subjectOf } from "./findings.ts";

/** Returns the sentence, then of each finding severity and code, cause, and help. */
export function healthText({ sentence, findings }: Health): string {
  const told = findings.flatMap((each) => [
    "",
    `${each.severity.toUpperCase()}  ${each.code}`,
    `  ${subjectOf(each)}${each.cause}`,
    `  → ${each.help}`,
  ]);
  return [sentence, ...told].join("\n");
}
