/**
 * Rules of the documents. A document that names a file which does not exist is wrong about the rest of its sentence, too.
 *
 * A name between backticks is looked up in this order: from the root, from the document's folder, and as an abbreviation that leaves out folders
 * (`extent-node/scrub.test.ts` is `services/extent-node/src/repair/scrub.test.ts`).
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, normalize } from "node:path";

/** Names of files in other projects, and patterns, by document. */
const elsewhere: Readonly<Record<string, readonly string[]>> = {
  "CONTRIBUTING.md": ["x.test.ts"],
  "RELEASING.md": ["sbom.cdx.json", "notes.md"],
  "docs/formats/archive.md": ["archive.json"],
};

/** Documents that a program writes, whose words a test compares, or that are older than the rule. */
const written = /^docs\/(api\/|faults\.md|guides\/health\.md|decisions\/)/;
const proseCharactersMax = 120;
/** A page of these folders says what holds now, in at most so many lines; one that grows beyond is split by subject. */
const linesMax: Readonly<Record<string, number>> = { "docs/measurements": 80, "docs/design": 300 };
const fileName = /^[\w.{},/-]+\.(ts|md|pml|sh|yml|mjs|jsonc|json|proto)$/;
/** Made by a running stamp, by a build or by the user, and so not in the repository. */
const madeLater = /^(\.tools|node_modules|run|data|files)\/|^(stamp\.config|stamp\.topology|stamp|cluster|formats)\.json$/;

export function documents(root: string): string[] {
  const files = globSync("**/*", { cwd: root, exclude: ["**/node_modules/**", ".git/**", ".tools/**"] });
  const byBase = new Map<string, string[]>();
  for (const path of files) {
    const base = path.slice(path.lastIndexOf("/") + 1);
    byBase.set(base, [...(byBase.get(base) ?? []), path]);
  }
  const known = new Set(files);
  const exists = (document: string, name: string): boolean =>
    known.has(normalize(name)) || known.has(normalize(join(document, "..", name))) || isAbbreviation(name, byBase);
  return globSync(["*.md", "docs/**/*.md", "{packages,services,examples,proto,tests}/**/*.md"], {
    cwd: root,
    exclude: ["**/node_modules/**"],
  })
    .sort()
    .flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8");
      return [...missing(path, text, exists), ...tooWide(path, text), ...tooLong(path, text)];
    });
}

function tooLong(document: string, text: string): string[] {
  const count = text.split("\n").length - 1;
  const max = linesMax[document.slice(0, document.lastIndexOf("/"))] ?? Number.POSITIVE_INFINITY;
  return count > max ? [`${document}: ${count} lines; at most ${max}: cut it, or split it by subject`] : [];
}

/** Libraries for users' programs, whose page is their guide. */
const libraries = new Set(["packages/coordination", "packages/endpoints", "packages/testcontainers"]);
const roomLinesMax = 30;

/** Each package and service says on one short page what it is for, what it never does, where to begin, what holds, and its tests. */
export function rooms(root: string): string[] {
  return globSync("{packages,services}/*/package.json", { cwd: root })
    .map((path) => path.slice(0, path.lastIndexOf("/")))
    .filter((room) => !libraries.has(room))
    .sort()
    .flatMap((room) => {
      const page = join(root, room, "README.md");
      if (!existsSync(page)) return [`${room}: has no README.md`];
      const text = readFileSync(page, "utf8");
      const parts = ["Never", "Begin at", "Holds", "Tests"].filter((part) => !text.includes(`\n- **${part}**: `));
      const gone = [...text.matchAll(/`((?:src|packages|services|tests|docs)\/[^`\s]*)`/g)]
        .map(([, name = ""]) => name)
        .filter((name) => globSync([name, `${room}/${name}`], { cwd: root }).length === 0);
      return [
        ...parts.map((part) => `${room}/README.md: has no "${part}"`),
        ...gone.map((name) => `${room}/README.md: names what does not exist: ${name}`),
        ...(text.split("\n").length - 1 > roomLinesMax ? [`${room}/README.md: more than ${roomLinesMax} lines`] : []),
      ];
    });
}

/** Prose ends at 120 characters. Tables, code, and a command in a line of its own may be longer. */
function tooWide(document: string, text: string): string[] {
  const breaches: string[] = [];
  let inCode = false;
  text.split("\n").forEach((line, at) => {
    if (/^\s*```/.test(line)) inCode = !inCode;
    const isProse = !inCode && !/^(\s*\|| {4}|\s*<!--|`)/.test(line);
    if (isProse && line.length > proseCharactersMax && !written.test(document))
      breaches.push(`${document}:${at + 1}: prose is wider than 120 characters`);
  });
  return breaches;
}

function missing(document: string, text: string, exists: (document: string, name: string) => boolean): string[] {
  const breaches: string[] = [];
  for (const [, code = ""] of text.matchAll(/`([^`\n]+)`/g)) {
    for (const word of code.split(/\s+/).filter((each) => fileName.test(each) && !each.startsWith("/") && !madeLater.test(each))) {
      for (const name of alternatives(word)) {
        if (elsewhere[document]?.includes(name) || exists(document, name)) continue;
        breaches.push(`${document}: names a file that does not exist: ${name}`);
      }
    }
  }
  for (const [, target = ""] of text.matchAll(/\]\(([^)#\s]+)[^)\s]*\)/g)) {
    if (/^[a-z]+:/.test(target) || exists(document, target.replace(/\/$/, ""))) continue;
    breaches.push(`${document}: links to a file that does not exist: ${target}`);
  }
  return breaches;
}

/** `a/{b,c}.ts` are `a/b.ts` and `a/c.ts`. */
function alternatives(word: string): string[] {
  const braces = /\{([^{}]*)\}/.exec(word);
  if (braces === null) return [word];
  const before = word.slice(0, braces.index);
  const after = word.slice(braces.index + braces[0].length);
  return (braces[1] ?? "").split(",").flatMap((part) => alternatives(before + part + after));
}

function isAbbreviation(name: string, byBase: ReadonlyMap<string, readonly string[]>): boolean {
  const parts = name.split("/");
  return (byBase.get(parts.at(-1) ?? "") ?? []).some((path) => {
    let found = 0;
    for (const folder of path.split("/")) if (folder === parts[found]) found++;
    return found === parts.length;
  });
}
