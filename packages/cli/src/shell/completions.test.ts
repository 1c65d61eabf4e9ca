/** The scripts and the manual page, in the programs that read them: bash everywhere; zsh, fish and groff where they are installed. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { exitCodesText } from "../exit.ts";
import { topLevelWords } from "../top-level.ts";
import { type CommandNode, commandTree, everyNode } from "./command-tree.ts";
import { completionOf, type ShellName } from "./completions.ts";
import { manPage } from "./man-page.ts";

const folder = mkdtempSync(join(tmpdir(), "stamp-completion-"));
after(() => rmSync(folder, { recursive: true, force: true }));
let tree: CommandNode;
before(async () => {
  tree = await commandTree();
});

const isThere = (program: string): boolean => spawnSync(program, ["--version"]).error === undefined;

function run(program: string, args: readonly string[], input: string): string {
  const { status, stdout, stderr } = spawnSync(program, args, { input, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  assert.equal(status, 0, `${program}: ${stderr}`);
  assert.equal(stderr, "", program);
  return stdout;
}

/** Returns what each shell offers for the last word of a command line. */
const asked: Readonly<Record<ShellName, (words: readonly string[]) => string[]>> = {
  bash: (words) => {
    const line = words.map((word) => `'${word}'`).join(" ");
    const call = `COMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _stamp; printf '%s\\n' "\${COMPREPLY[@]}"`;
    return linesOf(run("bash", ["--norc"], `${completionOf("bash", tree)}\n${call}\n`));
  },
  zsh: (words) => {
    // The functions of the line editor are there only where it runs.
    const stubs = `compadd() { shift; print -rl -- "$@" }; _describe() { print -rl -- \${\${(P)@[-1]}%%:*} }; _files() { print files }`;
    const call = `words=(${words.map((word) => `'${word}'`).join(" ")}); CURRENT=${words.length}; _stamp`;
    return linesOf(run("zsh", ["-f"], `${stubs}\n${completionOf("zsh", tree)}\n${call}\n`));
  },
  fish: (words) => {
    // It reads no script from the socket that Node gives it.
    const script = join(folder, "stamp.fish");
    writeFileSync(script, completionOf("fish", tree));
    const lines = linesOf(run("fish", ["--no-config", "-c", `source ${script}; complete -C '${words.join(" ")}'`], ""));
    return lines.map((line) => line.split("\t", 1)[0] ?? "");
  },
};

const linesOf = (text: string): string[] => text.split("\n").filter((line) => line !== "");

for (const shell of ["bash", "zsh", "fish"] as const) {
  test(`completion, ${shell}: commands, words of arguments, options and their values are offered`, (t) => {
    if (!isThere(shell)) {
      assert.notEqual(shell, "bash");
      t.skip(`${shell} is not installed`);
      return;
    }
    const complete = asked[shell];
    const first = complete(["stamp", ""]);
    for (const word of topLevelWords) assert.ok(first.includes(word), word);
    assert.ok(complete(["stamp", "node", "dr"]).includes("drain"));
    assert.ok(complete(["stamp", "up", "--d"]).includes("--data"));
    assert.deepEqual(complete(["stamp", "logs", "--level", ""]).sort(), ["debug", "error", "info", "warn"]);
    // An option that the help hides.
    assert.ok(!complete(["stamp", "up", "--blob"]).includes("--blobPort"));
    assert.ok(!complete(["stamp", "node", "--"]).includes("--tail"), "of another command");
  });
}

test("completion, bash: behind an option with a free value, names of files", () => {
  assert.ok(asked.bash(["stamp", "up", "--data", "/bin/ba"]).includes("/bin/bash"));
});

test("manual page: every command and option is there, and groff has nothing to say about it", (t) => {
  const page = manPage(tree, "1.2.3");
  if (!isThere("groff")) {
    t.skip("groff is not installed");
    return;
  }
  const shown = run("groff", ["-man", "-Tutf8", "-ww", "-P-cbou", "-rLL=1000n", "-"], page);
  const flat = shown.replaceAll(/\s+/g, " ");
  for (const { path, options } of everyNode(tree).slice(1)) {
    assert.ok(flat.includes(path), path);
    for (const { shown: option } of options) assert.ok(flat.includes(option), `${path}: ${option}`);
  }
  assert.ok(flat.includes(exitCodesText.replaceAll(/\s+/g, " ")));
  assert.ok(flat.includes("stamp 1.2.3"));
});
