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

For accounts with a hierarchical namespace. Asked are the lists of bearers whose role is not enough (last column), and of whom a user
delegation SAS names by \`suoid\`, who needs its letters, too. Shared keys, account and service SAS, and \`saoid\` are never judged. Every
directory above the one that holds the path needs \`--x\`. Below a directory with the sticky bit, only the owner of the directory or of what is
there removes, renames or replaces it. A recursive deletion needs \`rwx\` on the directory and on every one below it, and that the caller
owns those with a sticky bit; a recursive list needs \`r-x\` on every directory that it tells of. A rename needs the same at its source and
at its target.

| operation | on the directory that holds the path | on the path | role that is enough |
|---|---|---|---|
${listedOperations.map(line).join("\n")}

Owner and group: a superuser (a shared key, the role \`own\`) gives any. The owner of a path gives it a group that the owner is a member of.
Groups of a bearer are those of the claim \`groups\`; whom a SAS names has none.
`;

export const accessListsPath: string = fileURLToPath(new URL("../../docs/api/access-lists.md", import.meta.url));
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(accessListsPath, accessListsPage());
