/**
 * The guide to health and the rules for alerts, made from the list of kinds. `write-guide.ts` writes them; a test
 * compares them.
 */

import type { FindingKind } from "./kinds/kind.ts";
import { findingAreas, kinds } from "./kinds/kinds.ts";

export const guidePath = "docs/guides/health.md";
export const alertsPath = "docs/guides/stamp-alerts.yml";
export const scrapePath = "docs/guides/prometheus.yml";

const total = Object.keys(kinds).length;

const intro = `# Health

<!-- Made by \`node packages/cli/src/health/write-guide.ts\` from packages/cli/src/health/kinds-of-*.ts: change those. -->

\`\`\`sh
./stamp health            # one sentence, then every finding with its cause and the command that helps
./stamp health --json     # sentence, state and findings, for tools
./stamp status            # begins with the same sentence and, if the worst finding is critical, what helps; then shows everything
\`\`\`

<!-- until Ctrl-C -->
\`\`\`sh
./stamp health --watch    # again every 5 s (--watch SECONDS); prints when something has changed
\`\`\`

| exit code | the sentence begins with | is |
|---|---|---|
| 0 | healthy | nothing to do; there may be notes |
| 6 | serving, and needs attention | every request is served; at least one warning |
| 6 | NOT KNOWN | no process of some role answered this command, which may be at fault itself: nothing says that requests are refused |
| 7 | serving, and IN DANGER | every request is served; data may be lost, or it will not stay so |
| 7 | NOT SERVING EVERYTHING | requests are refused or wait |
| 3 | – | no cluster runs on the data folder |

All processes and managers are asked at the same moment, and have until 1.5 s after the start of the command (on a machine with much to do:
for a second) to answer. If at least three of the processes that are not down for certain, and at least half of them, are silent, they are asked once more, for up to 3 s. What does not
answer in time is unknown, never "down": a process is down if its supervisor says so, or if nobody listens at its address. It is never shown as it was before.
In containers the state \`down\` of \`stamp status\` ends with the command that starts the container again.
In a container (\`docker compose exec front-end-1 stamp
health\`) nothing is known of the supervisor, the configuration and the files of other containers, so these findings are left out.

Rules for Prometheus are in [stamp-alerts.yml](stamp-alerts.yml): an alert for each kind of finding that \`/metrics\` can tell, under the same
name (\`node-down\` is \`StampNodeDown\`). They take the defaults for what is configured: \`copies\` 3, \`minCopies\` 2.
[prometheus.yml](prometheus.yml) asks every process of \`./stamp up\` without flags; for a cluster of another shape:

\`\`\`sh
./stamp config prometheus > prometheus.yml
\`\`\`

In another configuration, ask the health door of every process at least every 30 s, in a job named \`stamp\`, with the labels \`role\` and
\`name\` of the process at its target and \`honor_labels: true\`: else \`StampProcessDown\` can't name the process that doesn't answer, and
alerts about what is missing come late or too early.

There are ${total} kinds; the table has the first sentence of each. A finding says all of it, with the command that helps for the folder, the
containers or the pods of this stamp; alerts have both as \`summary\` and \`action\`.
`;

const cell = (text: string): string => text.replaceAll("|", "\\|");

function row([code, kind]: readonly [string, FindingKind]): string {
  const stops = kind.stops === true ? ", stops requests" : "";
  return `| \`${code}\` | ${kind.severity}${stops} | ${cell(firstSentence(kind.means))} |`;
}

const firstSentence = (text: string): string => /^.*?[.](?= |$)/.exec(text)?.[0] ?? text;

export function guideText(): string {
  const tables = Object.entries(findingAreas).map(([title, all]) =>
    [`## ${title}`, "", "| code | severity | means |", "|---|---|---|", ...Object.entries(all).map(row), ""].join("\n"),
  );
  return [intro, ...tables].join("\n");
}

/**
 * Configuration of Prometheus that asks these processes. Each target has the labels of its process, so that an alert names
 * it also when it does not answer; `honor_labels` keeps the same labels of its answer in their place.
 */
export function scrapeText(processes: readonly { readonly role: string; readonly name: string; readonly http: string }[]): string {
  const targets = processes.flatMap(({ role, name, http }) => [
    `      - targets: [${JSON.stringify(http)}]`,
    `        labels: { role: ${role}, name: ${name} }`,
  ]);
  return [
    "# Configuration of Prometheus for a cluster of ./stamp up: docs/guides/health.md. Made by ./stamp config prometheus.",
    "global:",
    "  scrape_interval: 10s",
    "  evaluation_interval: 10s",
    "rule_files: [stamp-alerts.yml]",
    "scrape_configs:",
    "  - job_name: stamp",
    "    honor_labels: true",
    "    static_configs:",
    ...targets,
    "",
  ].join("\n");
}

export const alertName = (code: string): string =>
  `Stamp${code
    .split("-")
    .map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)
    .join("")}`;

/** Quotes a text for YAML: in double quotes it means the same as in JSON; in single quotes only those are doubled. */
const quoted = (text: string): string => (text.includes('"') ? `'${text.replaceAll("'", "''")}'` : JSON.stringify(text));

export function alertsText(): string {
  const rules = Object.entries<FindingKind>(kinds).flatMap(([code, { alert, severity, means, help }]) =>
    alert === undefined
      ? []
      : [
          `      - alert: ${alertName(code)}`,
          `        expr: ${quoted(alert.expr)}`,
          `        for: ${alert.lasts}`,
          `        labels: { severity: ${severity} }`,
          "        annotations:",
          `          summary: ${quoted(means)}`,
          `          action: ${quoted((alert.help ?? help).replaceAll("SUBJECT", "{{ $labels.name }}"))}`,
        ],
  );
  return [
    "# Rules for alerts of Prometheus: docs/guides/health.md. Made by node packages/cli/src/health/write-guide.ts.",
    "groups:",
    "  - name: stamp",
    "    rules:",
    ...rules,
    "",
  ].join("\n");
}
