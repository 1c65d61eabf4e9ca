/**
 * JSON files that people write. `JSON.parse` takes the last of two equal keys and drops the first one without a word: a host that was pasted twice
 * under one name would be missing.
 */

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
export const linesOfWrittenJson = (text: string): ReadonlyMap<string, number> => placesIn(text.replace(/^\uFEFF/, "")).lines;

/** `JSON.parse` names the line for some errors only. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    const [what] = /^Unexpected token .*?,/s.exec((error as SyntaxError).message) ?? [];
    if (what === undefined) throw error;
    // Texts that end before the wrong token are wrong in another way.
    const lines = json.split("\n");
    const line = lines.findIndex((_, at) => messageOf(lines.slice(0, at + 1).join("\n")).startsWith(what));
    throw new SyntaxError(`${(error as SyntaxError).message} (line ${line + 1})`);
  }
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
  readonly lines: ReadonlyMap<string, number>;
}

/** `json`: what JSON.parse takes. */
function placesIn(json: string): Places {
  const wrong: string[] = [];
  const lines = new Map<string, number>();
  const levels: Level[] = [];
  const path = (): string => levels.map(({ at }) => at).join(".");
  let [line, read] = [1, 0];
  const found = [...json.matchAll(tokens)];
  const all = found.map(([token]) => token);
  for (const [i, token] of all.entries()) {
    const { index } = found[i] as RegExpExecArray;
    line += json.slice(read, index).split("\n").length - 1;
    read = index;
    const level = levels.at(-1);
    if (typeof level?.at === "number" && token !== "," && token !== "]") lines.set(path(), line);
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
      lines.set(path(), line);
    }
  }
  return { wrong, lines };
}
