/**
 * Known advisories on the packages of the lock file, as the npm registry tells them (`POST /-/npm/v1/security/advisories/bulk`). A mirror may not
 * serve that, and a machine may have no network: then nothing is known, which is said, and is no failure.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./commands.ts";

export interface Advisory {
  readonly name: string;
  readonly title: string;
  readonly severity: string;
  readonly url: string;
}

/** Versions by name of every package that the lock file names. */
export function lockedPackages(lockFile: string): Record<string, string[]> {
  const versions: Record<string, string[]> = {};
  const section = lockFile.slice(lockFile.indexOf("\npackages:\n"), lockFile.indexOf("\nsnapshots:\n"));
  for (const [, name = "", version = ""] of section.matchAll(/^ {2}'?((?:@[^/'\n]+\/)?[^@'\n]+)@(\d[^'():\n]*)'?:$/gm))
    versions[name] = [...(versions[name] ?? []), version];
  return versions;
}

export type Advice =
  | { readonly kind: "told"; readonly advisories: readonly Advisory[] }
  | { readonly kind: "unknown"; readonly why: string };

/** Asks the registry. `timeoutMs`: for the whole question. */
export async function advisories(registry: string, packages: Record<string, readonly string[]>, timeoutMs: number): Promise<Advice> {
  const url = new URL("-/npm/v1/security/advisories/bulk", registry.endsWith("/") ? registry : `${registry}/`);
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(packages),
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (!answer.ok) return { kind: "unknown", why: `the registry answers ${answer.status}` };
    const told = (await answer.json()) as Record<string, readonly Omit<Advisory, "name">[]>;
    return { kind: "told", advisories: Object.entries(told).flatMap(([name, all]) => all.map((one) => ({ ...one, name }))) };
  } catch (error) {
    return { kind: "unknown", why: `the registry can't be asked: ${(error as Error).message}` };
  }
}

export const lockFile = (): string => readFileSync(join(root, "pnpm-lock.yaml"), "utf8");

/** Returns a line for each advisory that somebody has to act on. */
export const severe = (all: readonly Advisory[]): string[] =>
  all
    .filter(({ severity }) => severity === "high" || severity === "critical")
    .map(({ name, severity, title, url }) => `${name}: ${severity}: ${title} (${url})`);
