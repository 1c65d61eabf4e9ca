/** Every value of every option and argument that the commands declare: nonsense is refused before the command begins, in words that help. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { clusterConfigSchema } from "@stamp/cluster";
import { describeKeys } from "@stamp/ports-node";
import { type Argument, Command, CommanderError, type Option } from "commander";
import { CommandError, exitCodes } from "./exit.ts";
import { addWords, topLevelWords } from "./top-level.ts";
import { checkValues, kinds, type ValueKind } from "./values.ts";

const types = new Map(describeKeys(clusterConfigSchema).map(({ key, type }) => [key, type]));
const blanks = ["", " ", "\t"];
const noNumbers = [...blanks, "x", "-1", "1e308", "1e3", "0x10", "NaN", "Infinity", "9007199254740993", "9".repeat(40), "1 2"];
/** Texts that no key of the configuration of this type takes. */
const wrongByType: Readonly<Record<string, readonly string[]>> = {
  number: noNumbers,
  boolean: [...blanks, "maybe", "2"],
  enum: [...blanks, "nonsense"],
  string: blanks,
  union: [...blanks, "nonsense", "{", "5"],
  record: [...blanks, "nonsense", "[", "[1]", '{"nonsense":1}'],
  transform: ["[", "[1]", "5"],
};
/** Placeholders that promise a number, or another kind of their own. */
const promised =
  /^(n|s|seconds|number|lines|count|port|id|extent|version|days|minutes|host:port|addresses|hex|base64|time|level|role|account)$/;

function wrongFor(kind: ValueKind): readonly string[] {
  if (kind.key !== undefined) return wrongByType[types.get(kind.key) ?? ""] ?? assert.fail(`no wrong values for ${types.get(kind.key)}`);
  if (kind.bounds !== undefined) return [...noNumbers, String(kind.bounds.max + 1), ...(kind.bounds.min > 0 ? ["0"] : [])];
  if (kind.words !== undefined) return [...blanks, "nonsense", `${kind.words[0]}x`];
  return blanks;
}

/** False for what may hold a key of an account. */
const isShown = (kind: ValueKind): boolean =>
  kind.isSecret !== true && (kind.key === undefined || !["transform", "record", "union"].includes(types.get(kind.key) ?? ""));

interface Outcome {
  readonly begun: boolean;
  readonly said: string;
  readonly code: number;
}

/** Reads a command line as `stamp` does, up to the begin of the command. */
async function read(path: readonly string[], args: readonly string[]): Promise<Outcome> {
  const { program } = await commandAt(path);
  let [begun, said, code] = [false, "", 0];
  const prepare = (command: Command): void => {
    command.exitOverride().configureOutput({ writeErr: (text) => (said += text), writeOut: () => {} });
    command.action(() => {
      begun = true;
    });
    for (const each of command.commands) prepare(each);
  };
  for (const each of program.commands) if (each.name() === path[0]) prepare(each);
  try {
    await program.parseAsync([...path, ...args], { from: "user" });
  } catch (error) {
    said += (error as Error).message;
    if (error instanceof CommandError) code = error.exitCode;
    else code = error instanceof CommanderError && error.exitCode === 0 ? 0 : exitCodes.usage;
  }
  return { begun, said, code };
}

async function commandAt(path: readonly string[]): Promise<{ readonly program: Command; readonly command: Command }> {
  const program = new Command("stamp").exitOverride();
  await addWords(program, [path[0] ?? ""]);
  checkValues(program);
  const command = path.reduce((at, word) => at.commands.find((each) => each.name() === word) ?? assert.fail(path.join(" ")), program);
  return { program, command };
}

/** Paths of all commands that do something. */
async function everyPath(): Promise<string[][]> {
  const below = (command: Command, path: string[]): string[][] => [
    ...(command.commands.length === 0 || command.options.length > 0 ? [path] : []),
    ...command.commands.flatMap((each) => below(each, [...path, each.name()])),
  ];
  const found: string[][] = [];
  for (const word of topLevelWords) found.push(...below((await commandAt([word])).command, [word]));
  return found;
}

const kindOfValue = (value: Option | Argument): ValueKind | undefined => kinds.get(value);
const exampleOf = (value: Option | Argument): string => kindOfValue(value)?.example ?? "";

/** Arguments and options without which the command is refused. */
function needed(command: Command, without?: Option | Argument): string[] {
  const options = command.options.filter((each) => each.mandatory && each !== without).map((each) => `${each.long}=${exampleOf(each)}`);
  return [...options, ...command.registeredArguments.filter((each) => each.required && each !== without).map(exampleOf)];
}

const refused = ({ begun, said, code }: Outcome, line: string, ...words: readonly string[]): void => {
  assert.equal(begun, false, `${line}: the command began`);
  assert.equal(code, exitCodes.usage, `${line}: ${said}`);
  for (const word of words) assert.ok(said.includes(word), `${line}: ${word} is not in: ${said}`);
};

test("values of options and arguments: what is right begins the command; nonsense is refused with name, value and what is expected", async () => {
  let walked = 0;
  for (const path of await everyPath()) {
    const { command } = await commandAt(path);
    const right = await read(path, needed(command));
    assert.ok(right.begun, `${path.join(" ")} ${needed(command).join(" ")}: ${right.said}`);
    for (const option of command.options) {
      const kind = kindOfValue(option);
      if (kind === undefined) continue;
      // All commands have the same kinds of the configuration's flags.
      if (kind.key !== undefined && path[0] !== "up") continue;
      const [base, flag] = [needed(command, option), option.long ?? ""];
      for (const wrong of wrongFor(kind)) {
        walked++;
        const line = `${path.join(" ")} ${flag} ${JSON.stringify(wrong)}`;
        const words = isShown(kind) ? [flag, JSON.stringify(wrong).slice(1, -1), "allowed"] : [flag];
        refused(await read(path, [...base, `${flag}=${wrong}`]), line, ...words);
      }
      if (!option.variadic && kind.key === undefined)
        refused(await read(path, [...base, `${flag}=${kind.example}`, `${flag}=${kind.example}`]), `${flag} twice`, flag, "twice");
      if (option.required) refused(await read(path, [...base, flag]), `${flag} without a value`, flag, "missing");
    }
    for (const [at, argument] of command.registeredArguments.entries()) {
      const kind = kindOfValue(argument) ?? assert.fail(argument.name());
      const before = command.registeredArguments.slice(0, at).map(exampleOf);
      const after = command.registeredArguments
        .slice(at + 1)
        .filter((each) => each.required)
        .map(exampleOf);
      const options = needed(command).filter((each) => each.startsWith("--"));
      for (const wrong of wrongFor(kind)) {
        walked++;
        const line = `${path.join(" ")} ${argument.name()} ${JSON.stringify(wrong)}`;
        refused(await read(path, [...options, "--", ...before, wrong, ...after]), line, argument.name(), "allowed");
      }
      if (argument.required) refused(await read(path, [...options, ...before]), `${path.join(" ")} without ${argument.name()}`, "missing");
    }
  }
  assert.ok(walked > 1_000, `only ${walked} values were walked`);
});

test("values of options and arguments: a placeholder that promises a number, an address or a word has a kind of its own", async () => {
  for (const path of await everyPath()) {
    const { command } = await commandAt(path);
    for (const value of [...command.options, ...command.registeredArguments]) {
      const placeholder = "flags" in value ? /[<[]([^>\].]+)/.exec(value.flags)?.[1] : value.name();
      if (placeholder === undefined || !promised.test(placeholder)) continue;
      assert.throws(() => kindOfValue(value)?.("no such thing!"), `${path.join(" ")}: ${placeholder} takes any text`);
    }
  }
});

test("command line: an option that is none, an argument too many", async () => {
  for (const path of await everyPath()) {
    const { command } = await commandAt(path);
    refused(await read(path, [...needed(command), "--no-such-thing"]), `${path.join(" ")} --no-such-thing`, "--no-such-thing");
    if (command.registeredArguments.some(({ variadic }) => variadic) || command.commands.length > 0) continue;
    const all = [...needed(command).filter((each) => each.startsWith("--")), ...command.registeredArguments.map(exampleOf)];
    refused(await read(path, [...all, "too-much"]), `${path.join(" ")} too-much`, "too-much");
  }
});

test("values of options: of words the nearest is named; a secret is not repeated", async () => {
  assert.match((await read(["logs"], ["--level", "wrn"])).said, /--level: "wrn" is not allowed: one of .*did you mean warn\?/);
  assert.match((await read(["account", "rotate-key"], ["acme", "3"])).said, /number: "3" is not allowed: one of 1, 2$/);
  assert.match((await read(["location", "set-state"], ["north-1", "drainng"])).said, /did you mean draining\?/);
  const { said } = await read(["account", "rotate-key"], ["acme", "1", "--key", "!secret!"]);
  assert.match(said, /--key: what is given is not allowed: base64/);
  assert.doesNotMatch(said, /secret/);
});
