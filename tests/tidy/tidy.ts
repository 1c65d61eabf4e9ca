/** The rules of this repository that neither the compiler nor the linter can hold. Each breach is one line that names file and rule. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fragments } from "./comments.ts";
import { missingDecisions } from "./decisions.ts";
import { documents, rooms } from "./documents.ts";
import { folders } from "./folders.ts";
import { adapters, layers } from "./layers.ts";
import { longFiles } from "./long-files.ts";
import { names } from "./names.ts";
import { testFiles } from "./test-files.ts";

const ourImport = /(?:from|import)\s*\(?\s*"(@stamp\/[^"]+)"/g;
const relativeImport = /(?:from|import)\s*\(?\s*"(\.\.?\/[^"]+)"/g;

export interface Source {
  /** Relative to the root. */
  readonly path: string;
  readonly text: string;
  /** Folder name of its package: `base`, `extent-node`, `tests`. */
  readonly owner: string;
  readonly isTest: boolean;
}

interface Manifest {
  readonly name: string;
  readonly description?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

export function tidy(root: string): string[] {
  const sources = readSources(root);
  return [
    ...sources.flatMap((source) => [...layering(source), ...door(source), ...leftovers(source), ...machinePaths(source)]),
    ...manifests(root, sources),
    ...cycles(root),
    ...folders(sources),
    ...longFiles(sources),
    ...names(sources),
    ...testFiles(root, sources),
    ...linterScopes(root),
    ...fragments(root),
    ...documents(root),
    ...rooms(root),
    ...missingDecisions(root),
    ...pathsInDocuments(root),
  ];
}

export function readSources(root: string): Source[] {
  const files = globSync(["{packages,services}/*/**/*.{ts,tsx}", "tests/**/*.ts", "*.mjs"], {
    cwd: root,
    // The breaches that the test writes are text inside of it.
    exclude: ["**/node_modules/**", "packages/wire/src/gen/**", "tests/tidy/tidy.test.ts"],
  });
  return files.sort().map((path) => {
    const parts = path.split("/");
    const owner = parts[0] === "packages" || parts[0] === "services" ? (parts[1] ?? "") : "tests";
    const isTest = /\.(test|slow|conformance)\.ts$/.test(path) || /\/(testing\/.*|conformance\.ts)$/.test(path) || parts[0] === "tests";
    return { path, text: readFileSync(join(root, path), "utf8"), owner, isTest };
  });
}

/** Imports of code go one way; only main.ts of a service knows an adapter; nobody imports a service but those who run it. */
function layering({ path, text, owner, isTest }: Source): string[] {
  const layer = layers[owner];
  if (layer === undefined) return [`${path}: layering: ${owner} has no layer in tests/tidy/layers.ts`];
  if (isTest) return [];
  const breaches: string[] = [];
  for (const [, specifier = ""] of text.matchAll(ourImport)) {
    const target = specifier.split("/")[1] ?? "";
    if (target === owner) continue;
    if (!layer.allowed.includes(target)) breaches.push(`${path}: layering: ${owner} must not import ${target}`);
    if (layer.kind === "service" && adapters.includes(target) && !path.endsWith("/src/main.ts")) {
      breaches.push(`${path}: layering: only main.ts of a service imports an adapter, not this file (${target})`);
    }
  }
  return breaches;
}

/** `src/index.ts` is a package's only door, from inside and from outside. It names what goes through; generated code has the names of `proto/`. */
function door({ path, text }: Source): string[] {
  const breaches: string[] = [];
  for (const [, specifier = ""] of text.matchAll(ourImport)) {
    if (specifier.split("/").length !== 2) breaches.push(`${path}: one door: ${specifier} is not a package's index`);
  }
  if (/^(packages|services)\/[\w-]+\/src\/index\.ts$/.test(path)) {
    for (const [, specifier = ""] of text.matchAll(/^export \* from "((?!\.\/gen\/)[^"]+)"/gm))
      breaches.push(`${path}: one door: a package's index names its exports, also those of ${specifier}`);
  }
  const home = path.split("/").slice(0, path.startsWith("tests/") ? 1 : 2);
  for (const [, specifier = ""] of text.matchAll(relativeImport)) {
    const resolved = join(path, "..", specifier);
    if (home.length > 0 && !path.endsWith(".mjs") && !resolved.startsWith(`${home.join("/")}/`)) {
      breaches.push(`${path}: one door: ${specifier} leaves the package`);
    }
    if (!path.endsWith(".mjs") && !/\.(tsx?|json|css)$/.test(specifier)) breaches.push(`${path}: imports name their .ts: ${specifier}`);
  }
  return breaches;
}

/** Unfinished work is an issue, not a comment; a test that is skipped says why. */
function leftovers({ path, text }: Source): string[] {
  const breaches: string[] = [];
  const marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"];
  text.split("\n").forEach((line, at) => {
    const mark = marks.find((each) => new RegExp(`(//|\\*).*\\b${each}\\b`).test(line));
    if (mark !== undefined) breaches.push(`${path}:${at + 1}: leftover: ${mark}`);
    if (/\b(test|it|describe|suite)\.(only|todo)\(|\bonly: true\b/.test(line)) breaches.push(`${path}:${at + 1}: leftover: only or todo`);
    if (/\b(test|it|describe|suite)\.skip\(|\bskip: true\b/.test(line))
      breaches.push(`${path}:${at + 1}: leftover: skipped without a reason`);
  });
  return breaches;
}

/** The repository stands alone: no paths of the machine it was written on. */
function machinePaths({ path, text }: { path: string; text: string }): string[] {
  const found = /(^|[\s"'`(=:])\/(work|opt\/dev|root|home\/\w+|Users\/\w+)\//m.exec(text);
  return found ? [`${path}: machine path: ${found[0].trim()}`] : [];
}

/** package.json: dependencies go one way and are what the code imports; versions of others are exact. */
function manifests(root: string, sources: readonly Source[]): string[] {
  const breaches: string[] = [];
  for (const path of globSync("{packages/*,services/*,tests}/package.json", { cwd: root }).sort()) {
    const manifest: Manifest = JSON.parse(readFileSync(join(root, path), "utf8"));
    const owner = path === "tests/package.json" ? "tests" : (path.split("/")[1] ?? "");
    const layer = layers[owner];
    if (layer === undefined) {
      breaches.push(`${path}: layering: ${owner} has no layer in tests/tidy/layers.ts`);
      continue;
    }
    if (!manifest.description) breaches.push(`${path}: has no description`);
    const door = path.replace("package.json", "src/index.ts");
    if (existsSync(join(root, door)) && !readFileSync(join(root, door), "utf8").startsWith("/**"))
      breaches.push(`${door}: does not open with what the package is for`);
    if (manifest.name !== `@stamp/${owner}`) breaches.push(`${path}: is named ${manifest.name}`);
    const all = { ...manifest.dependencies, ...manifest.devDependencies };
    for (const [name, version] of Object.entries(all)) {
      if (!name.startsWith("@stamp/")) {
        if (!/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version)) breaches.push(`${path}: ${name} is not pinned: ${version}`);
      }
    }
    for (const name of Object.keys(manifest.dependencies ?? {})) {
      const target = name.split("/")[1] ?? "";
      if (name.startsWith("@stamp/") && !layer.allowed.includes(target))
        breaches.push(`${path}: layering: ${owner} must not depend on ${target}`);
    }
    const own = sources.filter((each) => each.owner === owner);
    for (const name of Object.keys(all)) {
      if (!own.some(({ text }) => text.includes(`"${name}`))) breaches.push(`${path}: ${name} is declared but not imported`);
    }
    for (const source of own) {
      for (const [, specifier = ""] of source.text.matchAll(ourImport)) {
        const name = specifier.split("/").slice(0, 2).join("/");
        const held = source.isTest ? all[name] : manifest.dependencies?.[name];
        if (name !== manifest.name && held === undefined && !breaches.includes(`${path}: ${name} is imported but not declared`)) {
          breaches.push(`${path}: ${name} is imported but not declared`);
        }
      }
    }
  }
  return breaches;
}

/** The linter bans clocks, randomness and adapters in every package that the compiler holds pure or async: biome.jsonc names them all. */
function linterScopes(root: string): string[] {
  const config = readFileSync(join(root, "biome.jsonc"), "utf8");
  return (["pure", "async"] as const).flatMap((kind) => {
    const names = Object.keys(layers).filter((name) => layers[name]?.kind === kind);
    const scope = `"packages/{${names.sort().join(",")}}/src/**"`;
    const written = config.split(scope).length - 1;
    return written === 2 ? [] : [`biome.jsonc: layering: ${scope} stands ${written} times; both overrides need it`];
  });
}

/** No package needs itself, over others or for its tests: a cycle can't be installed in order, and brings everything into an image. */
function cycles(root: string): string[] {
  const needs = new Map<string, readonly string[]>();
  for (const path of globSync("{packages/*,services/*,tests}/package.json", { cwd: root }).sort()) {
    const manifest: Manifest = JSON.parse(readFileSync(join(root, path), "utf8"));
    needs.set(
      manifest.name,
      Object.keys({ ...manifest.dependencies, ...manifest.devDependencies }).filter((name) => name.startsWith("@stamp/")),
    );
  }
  const done = new Set<string>();
  const breaches: string[] = [];
  const visit = (name: string, way: readonly string[]): void => {
    if (way.includes(name)) breaches.push(`package.json: cycle: ${[...way.slice(way.indexOf(name)), name].join(" needs ")}`);
    if (done.has(name) || way.includes(name)) return;
    for (const needed of needs.get(name) ?? []) visit(needed, [...way, name]);
    done.add(name);
  };
  for (const name of needs.keys()) visit(name, []);
  return breaches;
}

function pathsInDocuments(root: string): string[] {
  const files = globSync(["*.md", "docs/**/*.md", "proto/**/*.proto", "Dockerfile", "docker-compose.yml", ".ci/*"], { cwd: root });
  return files
    .filter((path) => existsSync(join(root, path)))
    .flatMap((path) => machinePaths({ path, text: readFileSync(join(root, path), "utf8") }));
}
