/** Writes docs/api/access-lists.md from the table that the tests expect (listed-operations.ts). */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ListedOperation, listedOperations } from "./listed-operations.ts";

const line = ({ name, parent = "--x", path, owner, role }: ListedOperation): string =>
  `| ${name} | \`${parent}\` | ${owner ? "its owner" : path === undefined ? "–" : `\`${path}\``} | ${role} |`;

export const accessListsPage = (): string => `# Rights that lists of access control give

Written by \`node tests/datalake/access-lists-docs.ts\` from what \`tests/datalake/lists-decide.test.ts\` expects of a running stamp: each row
with exactly these rights is allowed, and refused without each of them, whether they are an owner's, a named user's, the owning group's, a
named group's or everybody else's.

This page holds for accounts with a hierarchical namespace. Lists decide about two kinds of callers: bearers whose role is not enough (last
column), and users that a user delegation SAS names by \`suoid\`, who need the letters of the SAS, too. Lists decide nothing about shared keys,
account SAS, service SAS and \`saoid\`.

- The caller needs \`--x\` on each directory from the root down, except the one that holds the path: the table has that one.
- If a directory has the sticky bit, only its owner and the owner of an entry remove, rename or replace the entry.
- A recursive deletion needs \`rwx\` on the directory and on every directory below it. Of those with a sticky bit the caller is the owner.
- A recursive list needs \`r-x\` on every directory that it shows.
- A rename needs the rights of the table at its source and at its target.

| operation | on the directory that holds the path | on the path | role that is enough |
|---|---|---|---|
${listedOperations.map(line).join("\n")}

Owner and group: a superuser (a shared key, the role \`own\`) gives any. The owner of a path gives it a group that the owner is a member of.
Groups of a bearer are those of the claim \`groups\`; whom a SAS names has none.
`;

export const accessListsPath: string = fileURLToPath(new URL("../../docs/api/access-lists.md", import.meta.url));
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(accessListsPath, accessListsPage());
