/** Commands that are printed for a reader: each exists, and is written for the stamp that was asked. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import { inContainers } from "@stamp/cluster";
import { Command } from "commander";
import { root } from "./context.ts";
import { commandsAt, ourCommand } from "./health/help-text.ts";
import { healthy } from "./health/testing/healthy.ts";
import { sayUnlessUnread } from "./say.ts";
import { addWords } from "./top-level.ts";

test("a line that is elsewhere, too, is left out while a megabyte waits for a reader, and printed again when it was read", () => {
  const printed: string[] = [];
  const say = (text: string, writableLength: number): void =>
    sayUnlessUnread(text, { writableLength, write: (line: unknown) => printed.push(String(line)) > 0 });
  say("first", 0);
  say("nearly", 1_048_575);
  say("left out", 1_048_576);
  say("again", 0);
  assert.deepEqual(printed, ["first\n", "nearly\n", "again\n"]);
});

/** Texts that are no answer of a command: a page of the guide, pages in a browser, and a command that says its place itself. */
const noAnswers = /\/(health\/(guide|newest-copy)|console\/page-files)\.ts$|^packages\/(console-page|bench)\//;
const sources = globSync("{packages,services}/*/src/**/*.ts", { cwd: root })
  .filter((path) => !/\.(test|slow)\.ts$|\/(testing|gen)\//.test(path) && !noAnswers.test(path))
  .map((path) => join(root, path));

/** Lines of code of a file, with a word in place of each `${…}`. */
function linesOf(path: string): string[] {
  let text = readFileSync(path, "utf8").replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, (comment) => comment.replaceAll(/[^\n]/g, ""));
  for (let before = ""; before !== text; ) {
    before = text;
    text = text.replaceAll(/\$\{[^{}`]*\}/g, "X");
  }
  return text.split("\n");
}

/** Where the answer is not for people, or goes on as it comes. */
const writesItself: Readonly<Record<string, string>> = {
  "say.ts": "prints for all others",
  "console/console-command.ts": "the audit log of a container is lines of JSON",
  "drills/drill-command.ts": "goes on without a reader",
  "exit.ts": "waits until both outputs are written",
  "program.ts": "goes on without a reader",
};

test("nothing but say.ts prints words for people, so each command in them is written for the stamp that was asked", () => {
  const cli = join(root, "packages/cli/src");
  const found = sources
    .filter((path) => path.startsWith(cli))
    .filter((path) =>
      linesOf(path).some((line) => /\bconsole\.(log|error|warn|info)\(|\bprocess\.std(out|err)\b|\{ std(out|err) \} = process/.test(line)),
    )
    .map((path) => relative(cli, path));
  assert.deepEqual(found.sort(), Object.keys(writesItself).sort());
});

/** Commands, also of a first word that there is not. */
const anyCommand = new RegExp(ourCommand.source.replace(/\(\?=.*?\\b\)/, ""), "g");
/** Words that the launcher takes itself. */
const ofRepository = new Set(["--help", "test", "check", "ci", "land", "sim", "bench", "pnpm", "pack", "release"]);

const programs = new Map<string, Command>();

async function programOf(word: string): Promise<Command> {
  const known = programs.get(word) ?? new Command("stamp");
  if (!programs.has(word)) await addWords(known, [word]);
  programs.set(word, known);
  return known;
}

/** Returns what is wrong with a command that is printed: the words behind `./stamp `, until the mark that ends them. */
async function wrongWith(words: string): Promise<string> {
  const [first = "", ...rest] = words.split(" ");
  if (ofRepository.has(first)) return "";
  let command = await programOf(first);
  const left = [first, ...rest];
  while (command.commands.length > 0 && left.length > 0 && !left[0]?.startsWith("-")) {
    const next = command.commands.find((each) => each.name() === left[0]);
    if (next === undefined) return `there is no command ${left[0]}`;
    command = next;
    left.shift();
  }
  let places = command.registeredArguments.some(({ variadic }) => variadic) ? Infinity : command.registeredArguments.length;
  for (let at = 0; at < left.length; at++) {
    const word = left[at] ?? "";
    const option = command.options.find(({ long, short }) => word === long || word === short);
    if (word === "--help") continue;
    if (word.startsWith("-") && option === undefined) return `${word} is no option`;
    if (option !== undefined && (option.required || option.optional)) at++;
    else if (option === undefined && --places < 0) return `${word} is no argument: end the command with a mark`;
  }
  const reaches = command.options.some(({ long }) => long === "--data");
  const written = commandsAt(`./stamp ${words}`, { ...healthy.place, dataDir: "/else", location: " --data /above" });
  const isWritten = / --(data|at|help)\b/.test(written);
  if (command.commands.length > 0 || reaches === isWritten) return "";
  return reaches ? "it takes --data, which is not added" : "it takes no --data";
}

test("every command that is printed for a person exists, with its options, and ends where its words end", async () => {
  const found: string[] = [];
  let commands = 0;
  for (const path of sources) {
    for (const [at, line] of linesOf(path).entries()) {
      if (!line.includes("./stamp ")) continue;
      for (const literal of line.split(/["`]|\\n/))
        for (const [, words = ""] of literal.matchAll(anyCommand)) {
          commands++;
          const wrong = await wrongWith(words);
          if (wrong !== "") found.push(`${relative(root, path)}:${at + 1}: ./stamp ${words}: ${wrong}`);
        }
    }
  }
  assert.ok(commands > 100, "commands are printed");
  assert.deepEqual(found, []);
});

test("commands in words name the data folder, the compose file or the location that was asked, once", () => {
  const place = { ...healthy.place, dataDir: "/srv/two stamps", location: " --at 10.0.0.1:7900" };
  const inCompose = { ...place, dataDir: inContainers, compose: "docker compose -f compose.ha.yml -p two", container: "front-end-2" };
  const cases: [string, string, string][] = [
    [
      "2 findings: ./stamp health",
      "2 findings: ./stamp health --data '/srv/two stamps'",
      "2 findings: COMPOSE exec front-end-2 stamp health",
    ],
    ["see ./stamp node list.", "see ./stamp node list --data '/srv/two stamps'.", "see COMPOSE exec front-end-2 stamp node list."],
    [
      "stop it:  ./stamp down   see it:  ./stamp status\nnext",
      "stop it:  ./stamp down --data '/srv/two stamps'   see it:  ./stamp status --data '/srv/two stamps'\nnext",
      "stop it:  ./stamp down   see it:  COMPOSE exec front-end-2 stamp status\nnext",
    ],
    ["how far: ./stamp geo status acme", "how far: ./stamp geo status acme --at 10.0.0.1:7900", "how far: ./stamp geo status acme"],
    ["./stamp up --data /a; ./stamp drill list", "./stamp up --data /a; ./stamp drill list", "./stamp up --data /a; ./stamp drill list"],
    ["start it: docker compose up -d x-1", "start it: docker compose up -d x-1", "start it: COMPOSE up -d x-1"],
  ];
  for (const [text, here, composed] of cases) {
    assert.equal(commandsAt(text, place), here);
    assert.equal(commandsAt(here, place), here);
    const said = composed.replaceAll("COMPOSE", inCompose.compose);
    assert.equal(commandsAt(text, inCompose), said);
    assert.equal(commandsAt(said, inCompose), said);
  }
  const unknown = { ...place, dataDir: "", location: "" };
  for (const [text] of cases) assert.equal(commandsAt(text, unknown), text);
});
