/**
 * The version of a release is `release` of `packages/base/src/formats.ts`. Files that can't read it hold copies, which this sets, and a test
 * compares.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const number = String.raw`\d+\.\d+\.\d+`;

/** Files, and what stands before and behind the version there. */
const places: readonly { readonly files: string; readonly before: string; readonly behind: string }[] = [
  { files: "packages/base/src/formats.ts", before: 'export const release = "', behind: '"' },
  { files: "packages/testcontainers/package.json", before: '"version": "', behind: '"' },
  { files: "deploy/helm/stamp/Chart.yaml", before: "\nversion: ", behind: "\n" },
  { files: "deploy/helm/stamp/Chart.yaml", before: '\nappVersion: "', behind: '"' },
  { files: "Dockerfile", before: 'image.version="', behind: '"' },
  { files: "{docs/guides,packages/testcontainers}/*.md", before: "stamp-(?:storage|testcontainers)-", behind: String.raw`\.tgz` },
];

/** Returns `file: version` for each copy. */
export const versionsIn = (root: string): string[] =>
  places.flatMap(({ files, before, behind }) =>
    globSync(files, { cwd: root })
      .sort()
      .flatMap((file) =>
        [...readFileSync(join(root, file), "utf8").matchAll(new RegExp(`(?<=${before})${number}(?=${behind})`, "g"))].map(
          ([version]) => `${file}: ${version}`,
        ),
      ),
  );

/** Writes the version everywhere. Throws Error if the text is no version. */
export function setVersion(root: string, version: string): void {
  if (!new RegExp(`^${number}$`).test(version)) throw new Error(`--version ${version}: three numbers, such as 0.3.0`);
  for (const { files, before, behind } of places) {
    for (const file of globSync(files, { cwd: root })) {
      const text = readFileSync(join(root, file), "utf8");
      writeFileSync(join(root, file), text.replaceAll(new RegExp(`(?<=${before})${number}(?=${behind})`, "g"), version));
    }
  }
}
