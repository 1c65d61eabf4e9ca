/**
 * Reads an init file, or those of a folder, and checks everything in them that can be checked without a stamp: JSON, names, values, the files
 * of seed data, each of their lines. A mistake has its file, line and column.
 */
import { concatBytes } from "@stamp/base";
import type { WrittenFiles, WrittenJson } from "@stamp/ports";
import type { z } from "zod";
import { climbs, type InitAccount, initSchema } from "./schema.ts";

/** Largest init file, and longest line of seed data, in bytes. */
const initBytesMax = 16 * 1024 * 1024;
const lineBytesMax = 4 * 1024 * 1024;
const initFilesMax = 1_000;
export const seedFilesMax = 100_000;
/** Mistakes that one error tells. */
const toldMax = 20;

/** An init file that can't be applied. Its message has a line for each mistake. */
export class InitError extends Error {}

export interface Init {
  /** File that the entry stands in, for messages. */
  readonly name: string;
  /** Folder from which relative paths of the file count. */
  readonly folder: string;
  readonly accounts: readonly InitAccount[];
}

export interface SeedLine {
  /** Place in messages: "people.jsonl:7". */
  readonly where: string;
  /** Text of the line, unchanged. */
  readonly text: string;
  readonly value: unknown;
}

/** Reads the file at `path`, or each `.json` file of the folder in the order of their names. Throws InitError. */
export async function loadInit(files: WrittenFiles, path: string): Promise<readonly Init[]> {
  const kind = await inWords(() => files.kindOf(path));
  if (kind === undefined) throw new InitError(`init: there is no file ${path}`);
  if (kind === "file") return [await loadOne(files, path)];
  const named = await inWords(() => files.list(path, seedFilesMax));
  const own = named.filter(({ path: name }) => /^[^/]+\.json$/.test(name));
  if (own.length > initFilesMax) throw new InitError(`init: ${path} has more than ${initFilesMax} files`);
  const all: Init[] = [];
  for (const { path: name } of own) all.push(await loadOne(files, files.resolve(path, name)));
  return all;
}

async function loadOne(files: WrittenFiles, path: string): Promise<Init> {
  const text = new TextDecoder().decode(await wholeFile(files, path));
  let written: WrittenJson;
  try {
    written = files.parse(text);
  } catch (error) {
    const { message } = error as Error;
    const [, line, column] = /\(line (\d+) column (\d+)\)$/.exec(message) ?? [];
    throw new InitError(`${path}${line === undefined ? "" : `:${line}:${column}`}: not JSON: ${message.replaceAll(/\s+/g, " ")}`);
  }
  const where = (at: readonly PropertyKey[]): string => {
    const { line, column } = written.at(at);
    return `${path}:${line}:${column}: ${at.length === 0 ? "" : `${at.map(String).join(".")}: `}`;
  };
  return checkInit(files, { name: path, folder: files.folderOf(path), value: written.value, where });
}

/** Checks the content of an init file that is already parsed. Throws InitError. `where`: prefix of a message about the value at a path. */
export async function checkInit(
  files: WrittenFiles,
  { name, folder, value, where }: Omit<Init, "accounts"> & { readonly value: unknown; where(at: readonly PropertyKey[]): string },
): Promise<Init> {
  const parsed = initSchema.safeParse(value);
  if (!parsed.success) throw mistakes(parsed.error.issues.flatMap((issue) => ofIssue(issue, where)));
  const init = { name, folder, accounts: parsed.data.accounts };
  const wrong: string[] = [];
  for (const [at, account] of init.accounts.entries()) {
    const check = async (path: readonly PropertyKey[], work: () => Promise<unknown>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        wrong.push(`${where(["accounts", at, ...path])}${(error as Error).message}`);
      }
    };
    for (const [index, { files: seeds }] of account.containers.entries())
      if (seeds !== undefined) await check(["containers", index, "files"], () => seedFolder(files, folder, seeds));
    for (const [index, { entities }] of account.tables.entries())
      if (entities !== undefined) await check(["tables", index, "entities"], () => eachLine(files, folder, entities, checkEntity));
    for (const [index, { messages }] of account.queues.entries())
      if (typeof messages === "string") await check(["queues", index, "messages"], () => eachLine(files, folder, messages, checkMessage));
  }
  if (wrong.length > 0) throw mistakes(wrong);
  return init;
}

function ofIssue(issue: z.core.$ZodIssue, where: (at: readonly PropertyKey[]) => string): string[] {
  if (issue.code === "unrecognized_keys") return issue.keys.map((key) => `${where([...issue.path, key])}no such key (docs/guides/init.md)`);
  return [`${where(issue.path)}${issue.message}`];
}

function mistakes(told: readonly string[]): InitError {
  const more = told.length > toldMax ? [`and ${told.length - toldMax} more`] : [];
  return new InitError([...told.slice(0, toldMax), ...more].join("\n"));
}

/** Returns the files of a folder of seeds. Throws an error in words. */
export async function seedFolder(files: WrittenFiles, folder: string, named: string): Promise<readonly { path: string; bytes: number }[]> {
  const path = files.resolve(folder, named);
  if ((await files.kindOf(path)) !== "folder") throw new Error(`there is no folder ${path}`);
  const found = await files.list(path, seedFilesMax);
  const climbing = found.find((each) => climbs(each.path));
  if (climbing === undefined) return found;
  throw new Error(`${path} has a file named ${JSON.stringify(climbing.path)}, which leads out of the folder on some systems: rename it`);
}

/** Gives each line of a file of JSON lines to `take`; empty ones are passed over. Throws an error in words. */
export async function eachLine(
  files: WrittenFiles,
  folder: string,
  named: string,
  take: (line: SeedLine) => void | Promise<void>,
): Promise<void> {
  const path = files.resolve(folder, named);
  if ((await files.kindOf(path)) !== "file") throw new Error(`there is no file ${path}`);
  let number = 0;
  for await (const text of linesOf(files.read(path))) {
    number++;
    if (text.trim() === "") continue;
    const where = `${path}:${number}`;
    let value: unknown;
    try {
      value = files.parse(text).value;
    } catch (error) {
      throw new Error(`${where}: not JSON: ${(error as Error).message.replace(/\(line 1 column (\d+)\)$/, "(column $1)")}`);
    }
    await take({ where, text, value });
  }
}

async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() as string;
    if (rest.length > lineBytesMax) throw new Error(`a line is longer than ${lineBytesMax} bytes`);
    yield* lines;
  }
  yield rest + decoder.decode();
}

function checkEntity({ where, value }: SeedLine): void {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const { PartitionKey: partition, RowKey: row } = (isObject ? value : {}) as Record<string, unknown>;
  if (typeof partition !== "string" || typeof row !== "string") throw new Error(`${where}: an entity has texts PartitionKey and RowKey`);
}

function checkMessage({ where, value }: SeedLine): void {
  if (typeof value !== "string") throw new Error(`${where}: a message is a text in JSON: "hello"`);
}

async function wholeFile(files: WrittenFiles, path: string): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  await inWords(async () => {
    for await (const piece of files.read(path)) {
      bytes += piece.length;
      if (bytes > initBytesMax) throw new Error(`${path} is larger than ${initBytesMax} bytes`);
      pieces.push(piece);
    }
  });
  return concatBytes(pieces);
}

async function inWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new InitError(`init: ${(error as Error).message}`);
  }
}
