import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { clusterConfigSchema, planCluster } from "@stamp/cluster";
import { topLevelWords } from "../top-level.ts";
import { alertsPath, alertsText, guidePath, guideText, scrapePath, scrapeText } from "./guide.ts";
import type { FindingKind } from "./kinds/kind.ts";
import { kinds } from "./kinds/kinds.ts";

const root = join(import.meta.dirname, "../../../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

test("guide and alerts of health say what the list of kinds says (else: node packages/cli/src/health/write-guide.ts)", () => {
  assert.equal(read(guidePath), guideText());
  assert.equal(read(alertsPath), alertsText());
  assert.equal(read(scrapePath), scrapeText(planCluster(clusterConfigSchema.parse({})).processes));
});

test("what helps with a finding names commands, settings and guides that exist", () => {
  for (const [code, { help, means }] of Object.entries<FindingKind>(kinds)) {
    assert.match(means, /^[A-Z`].*\.$/s, `${code}: a sentence`);
    for (const [, word = ""] of help.matchAll(/\.\/stamp ([\w-]+)/g))
      assert.ok((topLevelWords as readonly string[]).includes(word), `${code}: ./stamp ${word}`);
    for (const [path] of `${help} ${means}`.matchAll(/docs\/[\w/-]+\.md/g)) assert.doesNotThrow(() => read(path), `${code}: ${path}`);
  }
});
