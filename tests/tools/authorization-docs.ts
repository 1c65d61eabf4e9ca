/** Writes docs/api/authorization.md from the table that the tests expect (tests/conformance/authorization-table.ts). */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ExpectedRow, expectedRows } from "../conformance/authorization-table.ts";

const lettersOf = (groups: readonly string[] | undefined): string => {
  if (groups === undefined) return "–";
  return groups.map((group) => (group.length > 8 ? "any" : [...group].map((letter) => `\`${letter}\``).join(" or "))).join(" and ");
};

/** Cells of a row behind the operation's name. */
const needs = (row: ExpectedRow): string =>
  `${row.resourceTypes} | ${lettersOf(row.account)} | ${lettersOf(row.service)} | ${lettersOf(row.delegation)} | ${row.role} | ${row.anonymous === "none" ? "–" : row.anonymous} |`;

/** Returns one line for all operations that need the same. */
const together = (rows: readonly ExpectedRow[]): string[] =>
  [...Map.groupBy(rows, needs)].map(([cells, those]) => `| ${those.map(({ operation }) => operation).join("; ")} | ${cells}`);

export function authorizationPage(): string {
  const parts = Object.entries(expectedRows).map(
    ([service, rows]) =>
      `## ${service}\n\n| operation | srt | account SAS | service SAS | user delegation SAS | role | public access |\n|---|---|---|---|---|---|---|\n` +
      `${together(rows).join("\n")}\n`,
  );
  const head = [
    "# Who may do what",
    "",
    "Written by `node tests/tools/authorization-docs.ts` from what `tests/conformance/authorization.slow.ts` expects of a running stamp. Behind a",
    "comma: a header or parameter that makes the operation ask for more. srt: resource types of an account SAS, one of them. –: not by this.",
    "Blocks by a user delegation SAS with `c`: since `sv` 2026-04-06. Breaking a lease with `d`: since 2017-07-29.",
    "",
  ];
  return `${head.join("\n")}\n${parts.join("\n")}`;
}

export const authorizationPagePath: string = fileURLToPath(new URL("../../docs/api/authorization.md", import.meta.url));
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(authorizationPagePath, authorizationPage());
