/** Health for people. */
import { inContainers } from "@stamp/cluster";
import { type Health, subjectOf } from "./findings.ts";

/** The sentence, then of each finding: severity and code, what was seen, what helps. */
export function healthText({ sentence, findings }: Health, dataDir: string): string {
  const told = findings.flatMap((each) => [
    "",
    `${each.severity.toUpperCase()}  ${each.code}`,
    `  ${subjectOf(each)}${each.cause}`,
    `  → ${helpIn(each.help, dataDir)}`,
  ]);
  return [sentence, ...told].join("\n");
}

/** Names the data folder in what helps; for containers, which have none of ours, the command that shows a log. */
export function helpIn(help: string, dataDir: string): string {
  if (dataDir !== inContainers) return help.replaceAll("DATA", dataDir);
  return help
    .replaceAll(/\.\/stamp logs --role (\S+) --data DATA/g, "docker compose logs --tail 50 $1")
    .replaceAll("in DATA/logs", "in what docker compose logs prints");
}
