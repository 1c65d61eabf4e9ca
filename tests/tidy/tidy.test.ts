/**
 * The repository keeps its own rules, and each rule is alive: a copy of the repository in which every rule is broken once is refused by
 * the compiler, the linter or `tidy`, each breach by name.
 */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root, run } from "../tools/commands.ts";
import { tidy } from "./tidy.ts";

test("the repository keeps the rules of tests/tidy", () => {
  assert.deepEqual(tidy(root), []);
});

function copyOfRepository(): string {
  const copy = mkdtempSync(join(tmpdir(), "stamp-tidy-"));
  for (const part of ["packages", "services", "tests", "biome.jsonc", "package.json", ".gitignore"]) {
    cpSync(join(root, part), join(copy, part), { recursive: true, verbatimSymlinks: true });
  }
  for (const part of ["base", "pure", "async", "node"]) cpSync(join(root, `tsconfig.${part}.json`), join(copy, `tsconfig.${part}.json`));
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

test("every rule of the compiler, the linter and tidy refuses a breach of it", { timeout: 120_000 }, async () => {
  const copy = copyOfRepository();
  try {
    const write = (path: string, text: string): void => writeFileSync(join(copy, path), text);
    // Purity: to the compiler these names do not exist, the linter names the port to take.
    write("packages/base/src/breach-timer.ts", "export const later = (): unknown => setTimeout(() => {}, 1);\n");
    write("packages/extent/src/breach-node.ts", 'export { readFileSync } from "node:fs";\n');
    write("packages/lsm/src/breach-buffer.ts", "export const held: unknown = Buffer.alloc(1);\n");
    write("packages/stream-client/src/breach-process.ts", "export const pid: number = process.pid;\n");
    // Determinism: what the compiler knows (it is in the language) only the linter can ban.
    write("packages/stream/src/breach-date.ts", "export const now = (): number => Date.now();\n");
    write("services/extent-node/src/breach-random.ts", "export const dice = (): number => Math.random();\n");
    write("services/front-end/src/breach-console.ts", 'console.log("x");\nexport const said = true;\n');
    write("services/front-end/src/breach-performance.ts", "export const now = (): number => performance.now();\n");
    write("services/front-end/src/breach-crypto.ts", "export const id = (): string => crypto.randomUUID();\n");
    write("services/front-end/src/breach-interval.ts", "export const every = (): unknown => setInterval(() => {}, 1);\n");
    // A decision that is gone.
    write("packages/base/src/breach-decision.ts", "// decisions 0103 and\n// 0999\nexport const decided = true;\n");
    // Doors and directions.
    write("packages/lease/src/breach-deep.ts", 'export * from "@stamp/base/src/prng.ts";\n');
    write("services/stream-manager/src/breach-service.ts", 'export * from "@stamp/extent-node";\n');
    write("packages/extent/src/breach-up.ts", 'export * from "@stamp/ports";\n');
    write("packages/lease/src/breach-relative.ts", 'export * from "../../base/src/index.ts";\n');
    const manifest = join(copy, "packages/stream/package.json");
    write(
      "packages/stream/package.json",
      readFileSync(manifest, "utf8").replace(
        '"dependencies": {',
        '"dependencies": {\n    "@stamp/ports-node": "workspace:*",\n    "zod": "^4.0.0",',
      ),
    );
    const base = readFileSync(join(copy, "packages/base/package.json"), "utf8");
    write(
      "packages/base/package.json",
      base.replace('"dependencies": {', '"devDependencies": { "@stamp/lsm": "workspace:*" },\n  "dependencies": {'),
    );
    // Style.
    write("packages/base/src/breach-default.ts", "export default 1;\n");
    write("packages/base/src/breach-fragment.ts", "/**\n * Of the last one.\n */\nexport const held = 1;\n");
    write("packages/base/src/breach-leaning.ts", "// The one that waits.\nexport const held = 1;\n");
    write("packages/base/src/breach-private.ts", "/**\n * Returns the rows\n * for an heir.\n */\nexport const held = 1;\n");
    write("packages/base/src/breach-any.ts", "export const anything: any = 1;\n");
    write("packages/base/src/breach-enum.ts", "export enum Kind {\n  a,\n}\n");
    write("packages/base/src/breach-long.ts", "// A line.\n".repeat(451));
    write("packages/base/src/breach-function.ts", `export function held(): void {\n${"  held();\n".repeat(81)}}\n`);
    write("packages/base/src/breach-leftover.ts", `// TO${""}DO: later\nexport const done = false;\n`);
    write("packages/base/src/breach.test.ts", `import { test } from "node:test";\ntest.sk${""}ip("never", () => {});\n`);
    write("packages/base/src/breach-path.ts", `export const where = "/ro${""}ot/somewhere";\n`);

    write("packages/base/src/breach-nobody.slow.ts", "export const run = false;\n");
    write("packages/base/src/breach-time.test.ts", 'assert.ok(performance.now() - startMs < 100, "soon");\n');

    for (const owner of ["base", "lsm", "geo"]) write(`packages/${owner}/src/breach-name.ts`, "export interface Breached {}\n");

    // Folders and cycles.
    write("packages/lsm/src/breach-one.ts", 'import { two } from "./breach-two.ts";\nexport const one = (): unknown => two;\n');
    write("packages/lsm/src/breach-two.ts", 'import { one } from "./breach-one.ts";\nexport const two = (): unknown => one;\n');
    write("packages/geo/src/breach-left.ts", 'import type { Right } from "./breach-right.ts";\nexport type Left = Right | 1;\n');
    write("packages/geo/src/breach-right.ts", 'import { type Left } from "./breach-left.ts";\nexport type Right = Left | 2;\n');
    write("packages/stream/src/breach-helper.ts", 'export * from "./testing/harness.ts";\n');
    mkdirSync(join(copy, "packages/erasure/src/crowd"));
    for (let at = 0; at < 17; at++) write(`packages/erasure/src/crowd/breach-${at}.ts`, `export const at = ${at};\n`);

    mkdirSync(join(copy, "docs/design"), { recursive: true });
    mkdirSync(join(copy, "docs/measurements"), { recursive: true });
    write("docs/measurements/long.md", "A line.\n".repeat(81));
    write("docs/design/long.md", "A line.\n".repeat(301));
    write("packages/lease/src/index.ts", 'export * from "./table.ts";\n');
    const described = readFileSync(join(copy, "packages/lsm/package.json"), "utf8");
    write("packages/lsm/package.json", described.replace(/ {2}"description.*\n/, ""));
    write("biome.jsonc", readFileSync(join(copy, "biome.jsonc"), "utf8").replace("{admission,", "{"));
    write(
      "packages/base/README.md",
      `See \`base/never-there.test.ts\` and [the rules](../../docs/never-there.md).\n\n${"wide ".repeat(30)}\n`,
    );

    const [pure, async] = await Promise.all([
      run("tsc", ["-p", "tsconfig.pure.json"], { cwd: copy }),
      run("tsc", ["-p", "tsconfig.async.json"], { cwd: copy }),
    ]);
    // After the compiler: an adapter brings Node's types along, which would hide the breaches above.
    write("services/stream-manager/src/breach-adapter.ts", 'export * from "@stamp/ports-node";\n');
    const lint = await run("biome", ["lint", "--max-diagnostics=none", "--colors=off", "packages", "services"], { cwd: copy });
    const breaches = tidy(copy);

    const compiler = (output: string, file: string): void =>
      assert.match(output, new RegExp(`${file}.*error TS`), `the compiler accepts ${file}`);
    compiler(pure.output, "breach-timer");
    compiler(pure.output, "breach-node");
    compiler(pure.output, "breach-buffer");
    compiler(pure.output, "breach-enum");
    compiler(async.output, "breach-process");
    compiler(async.output, "breach-console");
    compiler(async.output, "breach-performance");
    compiler(async.output, "breach-interval");

    const linter = (file: string, rule: string): void => {
      assert.match(
        lint.output,
        new RegExp(`${file}\\.ts:\\d+:\\d+ (lint/\\w+/)?${rule}`),
        `the linter accepts ${file} (${rule})\n${lint.output.slice(0, 2_000)}`,
      );
    };
    for (const file of ["timer", "buffer", "process", "date", "console", "performance", "crypto", "interval"])
      linter(`breach-${file}`, "noRestrictedGlobals");
    for (const file of ["node", "deep", "adapter"]) linter(`breach-${file}`, "noRestrictedImports");
    linter("breach-random", "plugin");
    linter("breach-default", "noDefaultExport");
    linter("breach-any", "noExplicitAny");
    linter("breach-function", "noExcessiveLinesPerFunction");

    const tells = (file: string, rule: string): void => {
      assert.ok(
        breaches.some((line) => line.includes(file) && line.includes(rule)),
        `tidy accepts ${file} (${rule})\n${breaches.join("\n")}`,
      );
    };
    tells("breach-deep.ts", "one door");
    tells("breach-relative.ts", "one door");
    tells("breach-adapter.ts", "only main.ts");
    tells("breach-service.ts", "stream-manager must not import extent-node");
    tells("breach-up.ts", "extent must not import ports");
    tells("packages/stream/package.json", "stream must not depend on ports-node");
    tells("packages/stream/package.json", "zod is not pinned");
    tells("@stamp/base needs @stamp/lsm needs @stamp/base", "cycle");
    tells("breach-name.ts", "names: Breached is exported by packages/base");
    tells("breach-nobody.slow.ts", "slow tests: 0 parts");
    tells("breach-time.test.ts:1", "wall time decides");
    tells("breach-long.ts", "451 lines");
    tells("breach-leftover.ts", "leftover");
    tells("breach.test.ts", "skipped without a reason");
    tells("breach-path.ts", "machine path");
    tells("breach-leaning.ts:1", "begins with a fragment: The one that waits");
    tells("breach-private.ts:1", "private word: heir");
    tells("breach-fragment.ts:1", "begins with a fragment: Of the last one");
    tells("packages/base/src/breach-decision.ts", "decision 0999, which does not exist");
    tells("packages/lease/src/index.ts", "what the package is for");
    tells("packages/lease/src/index.ts", "names its exports, also those of ./table.ts");
    tells("packages/lsm/package.json", "no description");
    tells("biome.jsonc", "both overrides need it");
    tells("packages/lsm/src/breach-one.ts", "imports itself over packages/lsm/src/breach-two.ts");
    tells("packages/geo/src/breach-left.ts", "imports itself by types over packages/geo/src/breach-right.ts");
    tells("packages/stream/src/breach-helper.ts", "imports a helper of tests");
    tells("packages/erasure/src/crowd", "holds 17 source files, at most 16");
    tells("packages/base/README.md:3", "wider than 120");
    tells("docs/measurements/long.md", "81 lines; at most 80");
    tells("docs/design/long.md", "301 lines; at most 300");
    tells("packages/base/README.md", "does not exist: base/never-there.test.ts");
    tells("packages/base/README.md", "does not exist: ../../docs/never-there.md");
    tells("packages/stream/package.json", "@stamp/ports-node is declared but not imported");
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
});
