/**
 * JSON files that people write. `JSON.parse` takes the last of two equal keys and drops the first one without a word: a host that was pasted twice
 * under one name would be missing.
 */
import type { WrittenJson, WrittenPlace } from "@stamp/ports";

/** One token: a string, a bracket, a comma, a colon, or a run of anything else. */
const tokens = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s"{}[\],:]+/g;

interface Level {
  /** Keys of an object so far; undefined in a list. */
  readonly keys: Set<string> | undefined;
  /** Key or index at which the reading is. */
  at: string | number;
}

/** Parses a file's text. A byte order mark at its begin counts for nothing. Throws SyntaxError, which names every key that stands twice. */
export function parseWrittenJson(text: string): unknown {
  const json = text.replace(/^\uFEFF/, "");
  const value: unknown = parsed(json);
  const { wrong } = placesIn(json);
  if (wrong.length > 0) throw new SyntaxError(wrong.join("; "));
  return value;
}

/** Returns the line on which each value of a text that `parseWrittenJson` takes begins, by its path: `accounts.0.name`. */
export const linesOfWrittenJson = (text: string): ReadonlyMap<string, number> =>
  new Map([...placesIn(text.replace(/^\uFEFF/, "")).places].map(([path, { line }]) => [path, line]));

/** Parses a file's text, as `parseWrittenJson` does, and keeps the place of each value. */
export function parsePlacedJson(text: string): WrittenJson {
  const json = text.replace(/^\uFEFF/, "");
  const value: unknown = parsed(json);
  const { wrong, places } = placesIn(json);
  const at = (path: readonly PropertyKey[]): WrittenPlace => {
    for (let length = path.length; length > 0; length--) {
      const place = places.get(path.slice(0, length).map(String).join("."));
      if (place !== undefined) return place;
    }
    return { line: 1, column: 1 };
  };
  if (wrong.length === 0) return { value, at };
  const { line, column } = at((wrong[0] as string).split(" ", 1)[0]?.split(".") ?? []);
  throw new SyntaxError(`${wrong.join("; ")} (line ${line} column ${column})`);
}

/** `JSON.parse` names line and column for some errors only. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    const { message } = error as SyntaxError;
    if (/\(line \d+ column \d+\)$/.test(message)) throw error;
    const { line, column } = wrongPlace(json, /^Unexpected token .*?,/s.exec(message)?.[0]);
    throw new SyntaxError(`${message} (line ${line} column ${column})`);
  }
}

/** Returns an error for a wrong token; `what`: beginning of its message. Undefined: the text ends too early. */
function wrongPlace(json: string, what: string | undefined): WrittenPlace {
  const lines = json.split("\n");
  const last = { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
  if (what === undefined) return last;
  // Texts that end before the wrong token are wrong in another way.
  const line = lines.findIndex((_, at) => messageOf(lines.slice(0, at + 1).join("\n")).startsWith(what));
  if (line < 0) return last;
  const before = lines.slice(0, line).map((each) => `${each}\n`);
  const text = lines[line] as string;
  const beginsWrong = (length: number): boolean => messageOf(before.join("") + text.slice(0, length)).startsWith(what);
  // Every longer text is wrong in the same way.
  let [fits, wrong] = [0, text.length];
  while (wrong - fits > 1) {
    const middle = Math.floor((fits + wrong) / 2);
    if (beginsWrong(middle)) wrong = middle;
    else fits = middle;
  }
  return { line: line + 1, column: wrong };
}

function messageOf(json: string): string {
  try {
    JSON.parse(json);
    return "";
  } catch (error) {
    return (error as SyntaxError).message;
  }
}

interface Places {
  readonly wrong: readonly string[];
  readonly places: ReadonlyMap<string, WrittenPlace>;
}

/** Returns the positions of values in `json`, a text that JSON.parse takes. */
function placesIn(json: string): Places {
  const wrong: string[] = [];
  const places = new Map<string, WrittenPlace>();
  const levels: Level[] = [];
  const path = (): string => levels.map(({ at }) => at).join(".");
  let [line, read, lineStart] = [1, 0, 0];
  const found = [...json.matchAll(tokens)];
  const all = found.map(([token]) => token);
  for (const [i, token] of all.entries()) {
    const { index } = found[i] as RegExpExecArray;
    line += json.slice(read, index).split("\n").length - 1;
    lineStart = json.lastIndexOf("\n", index - 1) + 1;
    read = index;
    const place = { line, column: index - (index === 0 ? 0 : lineStart) + 1 };
    const level = levels.at(-1);
    if (typeof level?.at === "number" && token !== "," && token !== "]") places.set(path(), place);
    if (token === "{") levels.push({ keys: new Set(), at: "" });
    else if (token === "[") levels.push({ keys: undefined, at: 0 });
    else if (token === "}" || token === "]") levels.pop();
    else if (token === "," && typeof level?.at === "number") level.at += 1;
    else if (level?.keys !== undefined && all[i + 1] === ":") {
      const key = JSON.parse(token) as string;
      level.at = key;
      if (key === "__proto__") wrong.push(`${path()} is no name that can be used`);
      else if (level.keys.has(key)) wrong.push(`${path()} stands there twice`);
      level.keys.add(key);
      places.set(path(), place);
    }
  }
  return { wrong, places };
}
