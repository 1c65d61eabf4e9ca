/**
 * The configuration of a process from one zod schema: defaults, then a JSON file (`--config`, STAMP_CONFIG), then the environment
 * (STAMP_<UPPER_SNAKE>), then flags (--kebab-case). Every error names the key, its environment variable and its flag.
 */
import { readFileSync } from "node:fs";
import { z } from "zod";
import { inWords } from "./in-words.ts";
import { parseWrittenJson } from "./written-json.ts";

export interface ConfigProblem {
  /** Key of the configuration; undefined: the problem concerns no single key. */
  readonly key: string | undefined;
  readonly message: string;
}

export class ConfigError extends Error {
  override readonly name = "ConfigError";
  /** Problems of values, one each; empty when the command line or a file can't be read. */
  readonly problems: readonly ConfigProblem[];

  constructor(message: string, problems: readonly ConfigProblem[] = []) {
    super(message);
    this.problems = problems;
  }
}

/** Thrown for `--help`; the message is what to print. */
export class HelpRequested extends Error {
  override readonly name = "HelpRequested";
}

export const envName = (key: string): string => `STAMP_${key.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toUpperCase()}`;
export const flagName = (key: string): string => `--${key.replace(/([a-z0-9])([A-Z])/g, "$1-$2").toLowerCase()}`;

interface Described {
  /** number, string, boolean, array, enum, object, … */
  readonly type: string;
  readonly description: string;
  readonly defaultValue: unknown;
  readonly hasDefault: boolean;
  readonly optional: boolean;
}

/** Returns the type of a key below defaults, optionals and refinements. */
function describe(schema: z.ZodType): Described {
  let current = schema;
  let description = current.description ?? "";
  let defaultValue: unknown;
  let hasDefault = false;
  let optional = false;
  for (;;) {
    const def = current.def as { type: string; innerType?: z.ZodType; in?: z.ZodType; defaultValue?: unknown };
    if (def.type === "default" || def.type === "prefault") {
      hasDefault = true;
      defaultValue ??= def.defaultValue;
    }
    if (def.type === "optional") optional = true;
    const inner = def.innerType ?? (def.type === "pipe" ? def.in : undefined);
    if (inner === undefined) return { type: def.type, description, defaultValue, hasDefault, optional };
    current = inner;
    description ||= current.description ?? "";
  }
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ...["true", "1", "yes", "on"].map((text) => [text, true] as const),
  ...["false", "0", "no", "off"].map((text) => [text, false] as const),
]);

/** Converts a text for one key of a schema, like `fromText`. */
export const textAs = (schema: z.ZodType, text: string): unknown => fromText(text, describe(schema).type);

/** Says what is wrong with a value, what was given, and what is allowed, where the schema says that in few words. */
export function wrongValue(schema: z.ZodType | undefined, given: unknown, message: string): string {
  if (schema === undefined || (typeof given === "object" && given !== null)) return message;
  const allowed = allowedBy(schema) ?? (given === undefined ? undefined : message);
  if (allowed === undefined) return message;
  return `${JSON.stringify(given)} is not allowed: ${allowed}`;
}

function allowedBy(schema: z.ZodType): string | undefined {
  const inner = below(schema);
  if (inner instanceof z.ZodBoolean) return "true or false";
  if (inner instanceof z.ZodEnum) return `one of ${inner.options.join(", ")}`;
  if (!(inner instanceof z.ZodNumber)) return undefined;
  const { minValue, maxValue } = inner;
  const min = minValue === null || minValue <= Number.MIN_SAFE_INTEGER ? undefined : minValue;
  const max = maxValue === null || maxValue >= Number.MAX_SAFE_INTEGER ? undefined : maxValue;
  const bounds = min !== undefined && max !== undefined ? `, ${min} to ${max}` : min !== undefined ? `, ${min} or more` : "";
  return `a ${inner.format === "safeint" ? "whole " : ""}number${bounds}`;
}

/** Returns the schema below defaults and optionals. */
function below(schema: z.ZodType): z.ZodType {
  const { innerType } = schema.def as { innerType?: z.ZodType };
  return innerType === undefined ? schema : below(innerType);
}

/** True if the number is exact: larger ones are rounded. */
const isExact = (number: number): boolean => Math.abs(number) <= Number.MAX_SAFE_INTEGER;

/** Returns a text of the environment or a flag as the schema's type wants it; left as it is when it does not fit, so that the schema says why. */
function fromText(text: string, type: string): unknown {
  // Neither 0x10 nor 1e3, which somebody may have meant otherwise, nor an empty text, which is 0 to JavaScript.
  if (type === "number") return /^-?\d+(\.\d+)?$/.test(text.trim()) && isExact(Number(text)) ? Number(text) : text;
  if (type === "boolean") return booleans.get(text.trim().toLowerCase()) ?? text;
  if (type === "array" && !text.trimStart().startsWith("[")) {
    return text
      .split(",")
      .map((item) => item.trim())
      .filter((item) => item !== "");
  }
  if (type === "array" || type === "object" || type === "record" || type === "tuple" || type === "union") {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}

/** Returns the meaning of every key of a schema with its default as JSON text; undefined: it has none. */
export const describeKeys = (
  schema: z.ZodObject,
): { readonly key: string; readonly type: string; readonly meaning: string; readonly byDefault?: string }[] =>
  Object.entries(schema.shape).map(([key, inner]) => {
    const { type, description, defaultValue, hasDefault } = describe(inner as z.ZodType);
    return { key, type, meaning: description, ...(hasDefault ? { byDefault: JSON.stringify(defaultValue) } : {}) };
  });

const naming = (key: string): string => `${key} (environment ${envName(key)}, flag ${flagName(key)})`;

function helpText(shape: Readonly<Record<string, z.ZodType>>): string {
  const lines = [
    "Configuration: flag, environment variable, default, meaning. Flags win over the environment, it over --config FILE (JSON).",
    "",
  ];
  for (const [key, schema] of Object.entries(shape)) {
    const { type, description, defaultValue, hasDefault, optional } = describe(schema);
    const given = hasDefault ? `default ${JSON.stringify(defaultValue)}` : optional ? "optional" : "required";
    lines.push(`  ${flagName(key)} <${type}>   ${envName(key)}   ${given}`);
    if (description) lines.push(`      ${description}`);
  }
  return lines.join("\n");
}

function flagsOf(argv: readonly string[], types: ReadonlyMap<string, string>): { values: Map<string, unknown>; file: string | undefined } {
  const byFlag = new Map([...types.keys()].map((key) => [flagName(key), key]));
  const values = new Map<string, unknown>();
  let file: string | undefined;
  for (let i = 0; i < argv.length; i++) {
    const argument = argv[i] as string;
    const equals = argument.indexOf("=");
    const flag = equals < 0 ? argument : argument.slice(0, equals);
    let text = equals < 0 ? undefined : argument.slice(equals + 1);
    const negated = flag.startsWith("--no-") ? byFlag.get(`--${flag.slice(5)}`) : undefined;
    const key = byFlag.get(flag);
    if (key === undefined && negated !== undefined && types.get(negated) === "boolean" && text === undefined) {
      values.set(negated, false);
      continue;
    }
    if (key === undefined && flag !== "--config") throw new ConfigError(`unknown flag ${flag} (--help lists all)`);
    const type = key === undefined ? "string" : (types.get(key) as string);
    if (text === undefined && type === "boolean" && !["true", "false"].includes(argv[i + 1] ?? "")) text = "true";
    if (text === undefined) {
      i += 1;
      text = argv[i];
      if (text === undefined) throw new ConfigError(`${flag} needs a value`);
    }
    if (key === undefined) file = text;
    else values.set(key, fromText(text, type));
  }
  return { values, file };
}

function fileOf(path: string): Record<string, unknown> {
  try {
    const parsed = parseWrittenJson(readFileSync(path, "utf8"));
    if (typeof parsed === "object" && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>;
  } catch (error) {
    throw new ConfigError(`the config file ${inWords(error, path)}`);
  }
  throw new ConfigError(`the config file ${path}: expected one JSON object`);
}

export interface UnknownName {
  readonly name: string;
  /** Known name that is nearest to the unknown one; undefined: none is near. */
  readonly nearest: string | undefined;
}

/** Returns the names of the environment that begin as settings do and are none of `known`. */
export function unknownNames(env: Readonly<Record<string, string | undefined>>, known: readonly string[]): UnknownName[] {
  return Object.keys(env)
    .filter((name) => name.startsWith("STAMP_") && !known.includes(name))
    .sort()
    .map((name) => ({ name, nearest: nearestName(name, known, name.length - "STAMP_".length) }));
}

/** Returns the known name that `name` may have been meant for. `letters`: letters of the name that count. */
export function nearestName(name: string, known: readonly string[], letters: number = name.length): string | undefined {
  const near = known.map((each) => ({ each, edits: editsBetween(name, each) })).sort((a, b) => a.edits - b.edits)[0];
  // More than a third of the letters is another word.
  return near && near.edits <= Math.max(2, letters / 3) ? near.each : undefined;
}

/** Returns the number of letters to insert, drop or change between two words (Levenshtein). */
function editsBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const changed = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] as number) + 1, (next[j - 1] as number) + 1));
    }
    row = next;
  }
  return row[b.length] as number;
}

/** Throws ConfigError with one line per problem, or HelpRequested. `argv` without the program's own names. */
export function loadConfig<S extends z.ZodObject>(
  schema: S,
  env: Readonly<Record<string, string | undefined>>,
  argv: readonly string[],
): z.infer<S> {
  const shape = schema.shape as Readonly<Record<string, z.ZodType>>;
  if (argv.includes("--help") || argv.includes("-h")) throw new HelpRequested(helpText(shape));
  const types = new Map(Object.entries(shape).map(([key, inner]) => [key, describe(inner).type]));
  const flags = flagsOf(argv, types);
  const path = flags.file ?? env.STAMP_CONFIG;
  const values: Record<string, unknown> = path === undefined || path === "" ? {} : fileOf(path);
  for (const key of Object.keys(values)) {
    if (!types.has(key)) throw new ConfigError(`the config file ${path}: unknown key ${key}`);
  }
  for (const [key, type] of types) {
    const text = env[envName(key)];
    if (text !== undefined) values[key] = fromText(text, type);
    if (flags.values.has(key)) values[key] = flags.values.get(key);
  }
  const parsed = schema.safeParse(values);
  if (parsed.success) return parsed.data as z.infer<S>;
  const problems = parsed.error.issues.map((issue): ConfigProblem & { readonly inside: string } => {
    const [key, ...rest] = issue.path.map(String);
    if (key === undefined || rest.length > 0)
      return { key, inside: rest.length > 0 ? ` at ${rest.join(".")}` : "", message: issue.message };
    // A problem of several keys is told at one of them, whose value alone is allowed.
    const own = issue.code === "custom" ? issue.message : wrongValue(shape[key], values[key], issue.message);
    return { key, inside: "", message: own };
  });
  const lines = problems.map(({ key, inside, message }) => (key === undefined ? message : `${naming(key)}${inside}: ${message}`));
  throw new ConfigError(`wrong configuration:\n${lines.map((line) => `  ${line}`).join("\n")}`, problems);
}
