/**
 * Commands that the documents name exist: every `stamp WORD …` in the README, the guides, the design and the help of
 * findings is a command of this program with that subcommand and these options. Whether they work is for
 * tests/drills/guides.slow.ts.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { it } from "node:test";
import { Command } from "commander";
import { addWords, topLevelWords } from "./top-level.ts";

const root = join(import.meta.dirname, "../../..");
/** They are programs of the repository, not of the command line: stamp.mjs. */
const programs = new Set(["test", "check", "ci", "land", "sim", "bench", "pack", "release"]);
const documents = [
  "README.md",
  "SECURITY.md",
  "CONTRIBUTING.md",
  "docker-compose.yml",
  "docs/guides/*.{md,yml}",
  "docs/design/*.md",
  "docs/formats/*.md",
];
/** Words up to the end of the code, the line or the sentence. */
const call = /(?<![\w/-])(?:\.\/)?stamp ([a-z]+(?:-[a-z]+)*)((?: [^`"'#;|&()\n<>]*)?)/g;

const added = new Map<string, Promise<Command | undefined>>();

function commandOf(word: string): Promise<Command | undefined> {
  const known = added.get(word) ?? addedFor(word);
  added.set(word, known);
  return known;
}

async function addedFor(word: string): Promise<Command | undefined> {
  const program = new Command("stamp");
  await addWords(program, [word]);
  return program.commands.find((each) => each.name() === word);
}

/** Returns what is wrong with a call, undefined if it can be what the text means. */
async function wrongIn(word: string, rest: string): Promise<string | undefined> {
  if (programs.has(word)) return undefined;
  let command = await commandOf(word);
  if (command === undefined) return `no command ${word}`;
  const words = rest
    .trim()
    .split(/\s+/)
    .filter((each) => each !== "");
  while (command.commands.length > 0) {
    const [next = ""] = words;
    // `list|disks`: each of them.
    const wanted = next
      .replace(/[.,:…]+$/, "")
      .split(/[|,]/)
      .filter((each) => each !== "");
    if (wanted.length === 0 || !/^[a-z]/.test(next)) return undefined;
    const parent: Command = command;
    const found: (Command | undefined)[] = wanted.map((each) =>
      parent.commands.find((one) => one.name() === each || one.aliases().includes(each)),
    );
    const missing = found.indexOf(undefined);
    if (missing >= 0) return `${word} has no command ${wanted[missing]}`;
    command = found[0] as Command;
    words.shift();
  }
  const known = new Set(command.options.flatMap(({ long, short }) => [long, short]));
  const unknown = words
    .flatMap((each) => /^\[?(--?[a-z][a-z-]*)/.exec(each)?.[1] ?? [])
    .filter((each) => !known.has(each) && each !== "--help");
  return unknown.length === 0 ? undefined : `${word} has no option ${unknown.join(", ")}`;
}

it("every command that a document names exists, with its options", async () => {
  const wrong: string[] = [];
  let seen = 0;
  for (const path of globSync(documents, { cwd: root }).sort()) {
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    for (const [at, line] of lines.entries()) {
      for (const [text, word = "", rest = ""] of line.matchAll(call)) {
        // In prose a stamp is a noun.
        if (!text.startsWith("./") && !(topLevelWords as readonly string[]).includes(word)) continue;
        if (!text.startsWith("./") && !/[`"] *(docker compose [^`]*)?$|^\s*$/.test(line.slice(0, line.indexOf(text)))) continue;
        seen++;
        const why = await wrongIn(word, rest);
        if (why !== undefined) wrong.push(`${path}:${at + 1}: ${text.trim()}: ${why}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
  assert.ok(seen > 100, `${seen} commands`);
});

it("a command, subcommand or option that does not exist is found", async () => {
  assert.equal(await wrongIn("nothing", ""), "no command nothing");
  assert.equal(await wrongIn("node", " frob x"), "node has no command frob");
  assert.equal(await wrongIn("node", " drain x --wait --soon"), "drain has no option --soon".replace("drain", "node"));
  assert.equal(await wrongIn("node", " drain|undrain NODE"), undefined);
  assert.equal(await wrongIn("up", " -d [--data DIR] [--port-base N]"), undefined);
});
