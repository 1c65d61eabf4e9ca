/** The manual page stamp(1), in the language of man(7). */
import { exitCodesText } from "../exit.ts";
import { type CommandNode, everyNode } from "./command-tree.ts";

export function manPage(tree: CommandNode, release: string): string {
  const sections = everyNode(tree).slice(1).flatMap(commandLines);
  return `${[
    `.TH STAMP 1 "" "stamp ${release}" "Stamp"`,
    ".SH NAME",
    "stamp \\- a self\\-hosted storage cluster that Azure Storage SDKs work against",
    ".SH SYNOPSIS",
    ".B stamp",
    ".I command",
    "[\\fIoptions\\fR]",
    ".SH COMMANDS",
    ...sections,
    ".SH EXIT STATUS",
    text(exitCodesText),
    ".SH ENVIRONMENT",
    "Each key of the configuration has a variable: STAMP_ and its name in upper case, as STAMP_DATA_DIR.",
    "\\fBstamp config show\\fR lists them with their values.",
    ".SH FILES",
    ".TP",
    ".I stamp.config.json",
    "Configuration, in the folder in which stamp is started.",
    ".TP",
    ".I .stamp",
    "Data folder, unless \\-\\-data names another.",
  ].join("\n")}\n`;
}

function commandLines(node: CommandNode): string[] {
  const takes = node.takes.map(({ shown }) => ` ${text(shown)}`).join("");
  const about = node.takes.filter((each) => each.about !== "").flatMap((each) => [".TP", text(each.shown), text(each.about)]);
  return [
    `.SS ${text(node.path)}${takes}`,
    text(sentence(node.about)),
    ...about,
    ...node.options.flatMap(({ shown, about: meaning }) => [".TP", `\\fB${text(shown)}\\fR`, text(meaning === "" ? "\u2013" : meaning)]),
  ];
}

const sentence = (about: string): string => (about === "" ? "" : `${about.slice(0, 1).toUpperCase()}${about.slice(1)}.`);

/** Returns a text without requests or escapes of roff, with hyphens that can be copied. */
const text = (plain: string): string =>
  plain
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll(/^(?=[.'])/gm, "\\&")
    .replaceAll("…", "...")
    .replaceAll("\u2013", "\\(en");
