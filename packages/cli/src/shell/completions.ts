/**
 * Scripts that complete command lines of `stamp` in bash, zsh and fish. Each finds the command among the words so far, then offers its commands,
 * options and words that can be listed; behind an option with another value, files. The scripts call no program.
 */
import { type CommandNode, everyNode, type OptionNode } from "./command-tree.ts";

export const shells = ["bash", "zsh", "fish"] as const;
export type ShellName = (typeof shells)[number];

export function completionOf(shell: ShellName, tree: CommandNode): string {
  const nodes = everyNode(tree);
  return shell === "bash" ? bash(nodes) : shell === "zsh" ? zsh(nodes) : fish(nodes);
}

/** Returns the words offered behind a command: commands below it, or words of its arguments. */
const wordsOf = (node: CommandNode): readonly { readonly word: string; readonly about: string }[] =>
  node.commands.length > 0
    ? node.commands.map(({ path, about }) => ({ word: lastOf(path), about }))
    : node.takes.flatMap(({ words, about }) => words.map((word) => ({ word, about })));

const lastOf = (path: string): string => path.slice(path.lastIndexOf(" ") + 1);

/** Returns the first sentence of a description, in one line without special characters of shells. */
const short = (about: string): string => (/^[^;(:.]*/.exec(about)?.[0] ?? "").replaceAll(/[^\w ,<>/+-]/g, "").trim();

const namesOf = ({ long, short: letter }: OptionNode): string[] => (letter === undefined ? [long] : [letter, long]);

/** Paths below the program, for the search of the command. */
const pathsOf = (nodes: readonly CommandNode[]): string =>
  nodes
    .slice(1)
    .map(({ path }) => `"${path}"`)
    .join("|");

/** Cases by path and option whose value is not free: `"stamp logs --level"`. */
const valued = (nodes: readonly CommandNode[], text: (option: OptionNode) => string): string[] =>
  nodes.flatMap(({ path, options }) =>
    options
      .filter(({ value }) => value === "required")
      .map(
        (option) =>
          `    ${namesOf(option)
            .map((name) => `"${path} ${name}"`)
            .join("|")}) ${text(option)} ;;`,
      ),
  );

function bash(nodes: readonly CommandNode[]): string {
  const offered = nodes.map((node) => {
    const options = node.options.flatMap(namesOf);
    return `    "${node.path}") words="${wordsOf(node)
      .map(({ word }) => word)
      .join(" ")}" options="${options.join(" ")}" ;;`;
  });
  const values = valued(nodes, ({ words }) =>
    words.length > 0
      ? `COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$current")); return`
      : 'COMPREPLY=($(compgen -f -- "$current")); return',
  );
  return `# bash completion of stamp: source <(stamp completion bash)
_stamp() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}" command=stamp words= options= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command \${COMP_WORDS[i]}" in
      ${pathsOf(nodes)}) command="$command \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$command $before" in
${values.join("\n")}
  esac
  case "$command" in
${offered.join("\n")}
  esac
  if [[ "$current" == -* ]]; then words="$options"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _stamp stamp ./stamp
`;
}

function zsh(nodes: readonly CommandNode[]): string {
  const quoted = (word: string, about: string): string => `'${word}${short(about) === "" ? "" : `:${short(about)}`}'`;
  const offered = nodes.map((node) => {
    const options = node.options.flatMap((option) => namesOf(option).map((name) => quoted(name, option.about)));
    return `    "${node.path}") offered=(${wordsOf(node)
      .map(({ word, about }) => quoted(word, about))
      .join(" ")}) options=(${options.join(" ")}) ;;`;
  });
  const values = valued(nodes, ({ words }) => (words.length > 0 ? `compadd -- ${words.join(" ")}; return` : "_files; return"));
  return `#compdef stamp
# zsh completion of stamp: stamp completion zsh > a folder of $fpath/_stamp
_stamp() {
  local command=stamp i
  local -a offered options
  for ((i = 2; i < CURRENT; i++)); do
    case "$command \${words[i]}" in
      ${pathsOf(nodes)}) command="$command \${words[i]}" ;;
    esac
  done
  case "$command \${words[CURRENT - 1]}" in
${values.join("\n")}
  esac
  case "$command" in
${offered.join("\n")}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then _describe -o option options
  elif (( \${#offered} )); then _describe command offered
  else _files
  fi
}
if [[ "$funcstack[1]" == _stamp ]]; then _stamp "$@"; elif (( $+functions[compdef] )); then compdef _stamp stamp; fi
`;
}

function fish(nodes: readonly CommandNode[]): string {
  const lines = nodes.flatMap((node) => {
    const at = `-n 'test (__stamp_command) = "${node.path}"'`;
    const words = wordsOf(node).map(({ word, about }) => `complete -c stamp -f ${at} -a '${word}' -d '${short(about)}'`);
    const options = node.options.map((option) => {
      const letter = option.short === undefined ? "" : ` -s ${option.short.slice(1)}`;
      const value = option.value !== "required" ? "" : option.words.length > 0 ? ` -x -a '${option.words.join(" ")}'` : " -r";
      return `complete -c stamp ${at}${letter} -l ${option.long.slice(2)}${value} -d '${short(option.about)}'`;
    });
    return [...words, ...options];
  });
  return `# fish completion of stamp: stamp completion fish | source
function __stamp_command
  set -l command stamp
  for word in (commandline -opc)[2..-1]
    switch "$command $word"
      case ${nodes
        .slice(1)
        .map(({ path }) => `'${path}'`)
        .join(" ")}
        set command "$command $word"
    end
  end
  echo $command
end
${lines.join("\n")}
`;
}
