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
  const value: unknown = JSON.parse(json);
  const wrong = wrongKeys(json);
  if (wrong.length > 0) throw new SyntaxError(wrong.join("; "));
  return value;
}

/** `json`: what JSON.parse takes. */
function wrongKeys(json: string): string[] {
  const wrong: string[] = [];
  const levels: Level[] = [];
  const path = (): string => levels.map(({ at }) => at).join(".");
  const all = json.match(tokens) ?? [];
  for (const [i, token] of all.entries()) {
    const level = levels.at(-1);
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
    }
  }
  return wrong;
}
