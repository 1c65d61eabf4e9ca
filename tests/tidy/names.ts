/** Names of exported types. One name for two things makes both hard to search for. */
import type { Source } from "./tidy.ts";

/** Most files of packages and services that export a type of one name. */
const filesMax = 2;
/** Types that more files export, each with their number, which must not grow. */
const shared: Readonly<Record<string, number>> = { Change: 3, Place: 3 };

const exportedType = /^export (?:declare )?(?:abstract )?(?:interface|type|class) (\w+)/gm;

export function names(sources: readonly Source[]): string[] {
  const files = new Map<string, Set<string>>();
  for (const { path, text, isTest } of sources) {
    if (isTest || !/^(packages|services)\/[^/]+\/src\//.test(path)) continue;
    for (const [, name = ""] of text.matchAll(exportedType)) files.set(name, (files.get(name) ?? new Set()).add(path));
  }
  const countOf = (name: string): number => files.get(name)?.size ?? 0;
  const wide = [...files].filter(([name, paths]) => paths.size > (shared[name] ?? filesMax));
  return [
    ...wide.map(
      ([name, paths]) => `${[...paths].at(-1)}: names: ${name} is exported by ${[...paths].join(", ")}; give one a name of its own`,
    ),
    ...Object.entries(shared)
      .filter(([name, count]) => countOf(name) < count)
      .map(([name]) => `tests/tidy/names.ts: names: ${name} is exported by ${countOf(name)} files`),
  ];
}
