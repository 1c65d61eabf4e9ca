/** Runs promtool over the shipped rules. It is in PATH, or the variable PROMTOOL names it. */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { alertsPath, scrapePath } from "../guide.ts";

const root = join(import.meta.dirname, "../../../../..");
/** Lines of a failure that are shown: each rule and time is about ten. */
const linesMax = 40;
const program = process.env.PROMTOOL ?? "promtool";

/** Returns why there is no promtool, or false if there is one. */
export function noPromtool(): string | false {
  try {
    execFileSync(program, ["--version"], { stdio: "ignore" });
    return false;
  } catch {
    return `there is no ${program} (Debian: package prometheus)`;
  }
}

/** Makes a folder with the shipped rules and scrape configuration, for the time of a test. */
export function ruleFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "stamp-promtool-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const path of [alertsPath, scrapePath]) copyFileSync(join(root, path), join(folder, path.split("/").at(-1) ?? ""));
  return folder;
}

/** Runs promtool in a folder. Throws the first lines of what it says if it fails. */
export function promtool(folder: string, ...args: readonly string[]): void {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`${program} ${args.join(" ")}: ${`${stderr}\n${stdout}`.split("\n").slice(0, linesMax).join("\n")}`);
}

/** Runs tests in the notation of `promtool test rules` over the shipped rules, which are evaluated once in each interval. */
export function testRules(folder: string, interval: string, tests: readonly object[]): void {
  // JSON is YAML.
  writeFileSync(join(folder, "tests.yml"), JSON.stringify({ rule_files: ["stamp-alerts.yml"], evaluation_interval: interval, tests }));
  promtool(folder, "test", "rules", "tests.yml");
}
