/**
 * The program behind `stamp`: reads the command line, runs the command, and turns its errors into words and an exit
 * code.
 */
import { Command, CommanderError } from "commander";
import { CommandError, exitCodes, exitCodesText } from "./exit.ts";
import { nearest } from "./nearest.ts";
import { adviseBy, warn } from "./say.ts";
import { addWords } from "./top-level.ts";
import { checkValues } from "./values.ts";

/** True if this program is the one of the installed package. */
const isPackage = !import.meta.url.endsWith(".ts");
/** Prefix of `stamp` in commands that messages name. */
const launcher = isPackage ? "" : "./";

export async function runProgram(argv: readonly string[]): Promise<void> {
  outliveReader();
  const program = new Command("stamp")
    .description("A self-hosted storage cluster that Azure Storage SDKs work against.")
    .showHelpAfterError("(see --help)")
    .addHelpText(
      "after",
      `
${isPackage ? "Also: stamp bench.\n\n" : `Also: ${repositoryWords.map((word) => `stamp ${word}`).join(", ")} (of this repository).\n\n`}${exitCodesText}`,
    )
    .configureOutput({ outputError: (text, write) => write(text) });
  await addVersion(program, argv.slice(2));
  await addWords(program, argv.slice(2));
  checkValues(program);
  throwAtEnd(program);
  program.hook("preAction", async (_program, asked) => adviseBy((await import("./health/place.ts")).adviceOf(asked)));
  const unknown = unknownWord(program, argv.slice(2)) ?? unknownBesideHelp(program, argv.slice(2));
  if (unknown !== undefined) {
    warn(`stamp: ${unknown}`);
    process.exitCode = exitCodes.usage;
    return;
  }
  try {
    await program.parseAsync(argv);
  } catch (error) {
    await tellError(error);
  }
}

/**
 * A command whose reader has gone (`| head`) goes on to its end, without words: it may have processes to stop, or an exit code to give. One that
 * only reads and never ends by itself, `stamp logs --follow`, ends there by itself.
 */
function outliveReader(): void {
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});
}

/** Adds the version option; the number itself is in a package that help does not load. */
async function addVersion(program: Command, args: readonly string[]): Promise<void> {
  const isAsked = ["--version", "-V"].includes(args[0] ?? "");
  const release = isAsked ? (await import("@stamp/base")).release : "";
  program.version(release, "-V, --version", "the release of this program; of each running process: ./stamp status --json");
}

/** Lets commander throw where it would end the process, after help and after a wrong command line: what it has said may not be written yet. */
function throwAtEnd(command: Command): void {
  command.exitOverride();
  for (const each of command.commands) throwAtEnd(each);
}

/**
 * Says that a command is none, with the nearest one. commander answers `--help` behind a word that it does not know with the help of the words
 * before, and exit code 0. Undefined if all words are commands.
 */
export function unknownWord(program: Command, args: readonly string[]): string | undefined {
  let at = program;
  for (const [index, word] of args.entries()) {
    if (word.startsWith("-") || at.commands.length === 0) return undefined;
    if (word === "help") return index === 0 ? unknownWord(program, args.slice(1)) : undefined;
    const next = at.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (next === undefined) {
      // A command with arguments of its own takes the word.
      if (at.registeredArguments.length > 0) return undefined;
      const words = [...at.commands.map((each) => each.name()), ...(at === program ? repositoryWords : [])];
      const near = nearest(word, words);
      const path = pathOf(at);
      const hint = near === undefined ? `see: ${launcher}${path} --help` : `did you mean: ${launcher}${path} ${near}`;
      return `there is no command ${path} ${word}; ${hint}`;
    }
    at = next;
  }
  return undefined;
}

/** Says that an option is none, with the nearest one, where help is asked for: commander answers that with the help, and exit code 0. */
export function unknownBesideHelp(program: Command, args: readonly string[]): string | undefined {
  const asked = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  if (!asked.some((word) => isHelp(word))) return undefined;
  let at = program;
  for (let index = 0; index < asked.length; index++) {
    const [word = ""] = asked[index]?.split("=", 1) ?? [];
    if (!word.startsWith("-")) {
      at = at.commands.find((each) => each.name() === word || each.aliases().includes(word)) ?? at;
      continue;
    }
    const option = at.options.find(({ long, short }) => word === long || word === short);
    // The value of an option is no word of the command line.
    if (option?.required === true && !asked[index]?.includes("=") && !isHelp(asked[index + 1] ?? "")) index++;
    if (option !== undefined || isHelp(word) || !/^-(-|[a-z]$)/i.test(word)) continue;
    const near = nearest(
      word,
      at.options.flatMap(({ long, hidden }) => (long == null || hidden ? [] : [long])),
    );
    return `./${pathOf(at)} has no option ${word}; ${near === undefined ? `see: ./${pathOf(at)} --help` : `did you mean: ${near}`}`;
  }
  return undefined;
}

const isHelp = (word: string): boolean => word === "--help" || word === "-h";

/** Words that the launcher takes, of this repository. */
const repositoryWords = isPackage ? ["bench"] : ["test", "check", "ci", "land", "sim", "bench", "pack", "release"];

const pathOf = (command: Command): string => (command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`);

/** Prints an error for people. Throws an error that is a bug, because that needs its stack. */
async function tellError(error: unknown): Promise<void> {
  if (error instanceof CommanderError) {
    // commander ends with 1 for a wrong command line; 1 means here that something failed.
    process.exitCode = error.exitCode === 0 ? 0 : exitCodes.usage;
    return;
  }
  if (error instanceof CommandError) {
    warn(`stamp: ${error.message}`);
    process.exitCode = error.exitCode;
    return;
  }
  // The command has loaded these packages already; help needs none of them.
  const { FailureError } = await import("@stamp/base");
  const { ConfigError, StartError } = await import("@stamp/cluster");
  const { DrillError } = await import("@stamp/drills");
  const { DiskError } = await import("@stamp/ports");
  const { inWords, isSystemError } = await import("@stamp/ports-node");
  if (error instanceof ConfigError || error instanceof StartError) {
    warn(`stamp: ${error.message}`);
    process.exitCode = error instanceof ConfigError ? exitCodes.usage : exitCodes.failed;
  } else if (error instanceof DrillError) {
    warn(`stamp: ${error.message}`);
    process.exitCode = error.isNotRunning ? exitCodes.notRunning : exitCodes.failed;
  } else if (isSystemError(error) || error instanceof DiskError || error instanceof FailureError) {
    warn(`stamp: ${error instanceof FailureError ? error.failure.message : inWords(error)}`);
    process.exitCode = exitCodes.failed;
  } else {
    throw error;
  }
}
