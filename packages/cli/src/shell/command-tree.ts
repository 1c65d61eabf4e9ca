/** All commands with their options and words, as data: what completions and the manual page are made from. */
import { type Argument, Command, type Option } from "commander";
import { addWords, topLevelWords } from "../top-level.ts";
import { checkValues, kinds } from "../values.ts";

export interface CommandNode {
  /** Words of the command, with the program first: "stamp node add". */
  readonly path: string;
  readonly about: string;
  readonly options: readonly OptionNode[];
  readonly takes: readonly ArgumentNode[];
  readonly commands: readonly CommandNode[];
}

export interface OptionNode {
  readonly long: string;
  /** Short form of the option; undefined: the option has only a long form. */
  readonly short: string | undefined;
  /** Text in the help: "-d, --detach", "--init [file]". */
  readonly shown: string;
  readonly about: string;
  /** Kind of value that the option takes. */
  readonly value: "none" | "optional" | "required";
  /** Values that the option takes; empty: they can't be listed. */
  readonly words: readonly string[];
}

export interface ArgumentNode {
  /** Text in the help: "<account>", "[process...]". */
  readonly shown: string;
  readonly about: string;
  readonly words: readonly string[];
}

/** Loads the modules of all words. */
export async function commandTree(): Promise<CommandNode> {
  const commands: CommandNode[] = [];
  for (const word of topLevelWords) {
    const program = new Command("stamp");
    await addWords(program, [word]);
    checkValues(program);
    const command = program.commands.find((each) => each.name() === word);
    if (command !== undefined) commands.push(nodeOf(command, "stamp"));
  }
  return { path: "stamp", about: "", options: [], takes: [], commands };
}

/** Returns all nodes below one, itself first. */
export const everyNode = (node: CommandNode): CommandNode[] => [node, ...node.commands.flatMap(everyNode)];

function nodeOf(command: Command, parent: string): CommandNode {
  const path = `${parent} ${command.name()}`;
  return {
    path,
    about: command.description(),
    options: [...command.options.filter(({ hidden }) => !hidden).map(optionOf), help],
    takes: command.registeredArguments.map(argumentOf),
    commands: command.commands.map((each) => nodeOf(each, path)),
  };
}

const help: OptionNode = { long: "--help", short: "-h", shown: "-h, --help", about: "display help for command", value: "none", words: [] };

const optionOf = (option: Option): OptionNode => ({
  long: option.long ?? option.flags,
  short: option.short,
  shown: option.flags,
  about: option.description,
  value: option.required ? "required" : option.optional ? "optional" : "none",
  words: kinds.get(option)?.words ?? [],
});

const argumentOf = (argument: Argument): ArgumentNode => {
  const name = `${argument.name()}${argument.variadic ? "..." : ""}`;
  return { shown: argument.required ? `<${name}>` : `[${name}]`, about: argument.description, words: kinds.get(argument)?.words ?? [] };
};
