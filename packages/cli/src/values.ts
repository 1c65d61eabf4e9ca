/**
 * Values of options and arguments. Each is checked while the command line is read, before a command asks or changes anything. A kind is a parser of
 * commander; a value without one has the kind that its placeholder says (`<on|off>`, `<extent>`), else that of texts.
 *
 * Imports nothing of the stamp, because help and a wrong command line load it.
 */
import type { Command } from "commander";
import { CommandError, exitCodes } from "./exit.ts";
import { nearest } from "./nearest.ts";

/** Returns the text, or throws NotExpected. */
export interface ValueKind {
  (text: string): string;
  /** Value that is accepted, for the error text. */
  readonly example: string;
  /** Bounds of a number; undefined for other kinds. */
  readonly bounds?: { readonly min: number; readonly max: number };
  /** Words of a kind that has no others. */
  readonly words?: readonly string[];
  /** Key of the configuration that the flag sets. */
  readonly key?: string;
  /** True if an error must not repeat the value. */
  readonly isSecret?: boolean;
}

/** Thrown by a kind. The message says what is expected. */
export class NotExpected extends Error {}

export function kindOf(example: string, why: (text: string) => string | undefined, about: Partial<ValueKind> = {}): ValueKind {
  const kind = (text: string): string => {
    const expected = why(text);
    if (expected !== undefined) throw new NotExpected(expected);
    return text;
  };
  return Object.assign(kind, { example, ...about });
}

const numberOf = (shape: RegExp, what: string, min: number, max: number): ValueKind =>
  kindOf(
    String(min),
    (text) => (shape.test(text) && Number(text) >= min && Number(text) <= max ? undefined : `${what}, ${min} to ${max}`),
    { bounds: { min, max } },
  );

export const whole = (min: number, max: number): ValueKind => numberOf(/^\d{1,16}$/, "a whole number", min, max);
export const number = (min: number, max: number): ValueKind => numberOf(/^\d{1,16}(\.\d{1,9})?$/, "a number", min, max);

/** Every other letter is near to a text of fewer letters. */
const lettersMin = 3;

export const oneOf = (words: readonly string[]): ValueKind =>
  kindOf(
    words[0] ?? "",
    (text) => {
      if (words.includes(text)) return undefined;
      const near = text.trim().length < lettersMin ? undefined : nearest(text, words);
      return `one of ${words.join(", ")}${near === undefined ? "" : ` (did you mean ${near}?)`}`;
    },
    { words },
  );

export const textKind: ValueKind = kindOf("text", (text) => (text.trim() === "" ? "a text that is not empty" : undefined));

export const accountName: ValueKind = kindOf("acme", (text) =>
  /^[a-z0-9]{3,24}$/.test(text) ? undefined : "3 to 24 lower case letters and digits",
);

const base64Shape = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)$/;
const base64: ValueKind = kindOf("QQ==", (text) => (base64Shape.test(text) ? undefined : "base64"), { isSecret: true });

/** Seconds that a timer takes. */
export const secondsMax = 2_147_483;
const extentId = whole(0, Number.MAX_SAFE_INTEGER);

/** Kinds of values, by the placeholder of an option or argument. */
const byPlaceholder: Readonly<Record<string, ValueKind>> = {
  account: accountName,
  base64,
  extent: extentId,
  id: extentId,
  port: whole(1, 65_000),
  version: whole(1, Number.MAX_SAFE_INTEGER),
};

const kindBy = (placeholder: string): ValueKind =>
  placeholder.includes("|") ? oneOf(placeholder.split("|")) : (byPlaceholder[placeholder] ?? textKind);

type Parse = (text: string, before: unknown) => unknown;

/** Option or argument that takes a value. */
interface Taker {
  readonly variadic: boolean;
  readonly defaultValue?: unknown;
  readonly parseArg?: unknown;
  argParser(parse: Parse): unknown;
}

/** Lets every command below refuse wrong values. */
export function checkValues(command: Command): void {
  for (const option of command.options) {
    const placeholder = /[<[]([^>\].]+)/.exec(option.flags)?.[1];
    if (placeholder !== undefined) checkValue(option as Taker, option.long ?? option.flags, placeholder, !option.variadic);
  }
  for (const argument of command.registeredArguments) checkValue(argument as Taker, argument.name(), argument.name(), false);
  for (const each of command.commands) checkValues(each);
}

/** Kind of each option and argument of checked commands. */
export const kinds: WeakMap<object, ValueKind> = new WeakMap();

function checkValue(taker: Taker, name: string, placeholder: string, once: boolean): void {
  const kind = (taker.parseArg as ValueKind | undefined) ?? kindBy(placeholder);
  kinds.set(taker, kind);
  let given: string | undefined;
  taker.argParser((text, before) => {
    if (once && given !== undefined)
      throw new CommandError(
        `${name} is given twice${kind.isSecret === true ? "" : `: ${JSON.stringify(given)} and ${JSON.stringify(text)}`}`,
        exitCodes.usage,
      );
    given = text;
    const value = checked(kind, name, text);
    if (!taker.variadic) return value;
    return Array.isArray(before) && before !== taker.defaultValue ? [...before, value] : [value];
  });
}

function checked(kind: ValueKind, name: string, text: string): string {
  try {
    return kind(text);
  } catch (error) {
    if (!(error instanceof NotExpected)) throw error;
    const shown = kind.isSecret === true ? "what is given" : JSON.stringify(text);
    throw new CommandError(`${name}: ${shown} is not allowed: ${error.message}`, exitCodes.usage);
  }
}
