/**
 * Last words of a process: the last line of level "error" of its log (JSON lines), or the line in which Node names an error that nobody
 * caught. The supervisor tells it beside the exit code, which alone says nothing to a reader of `stamp status`.
 */

/** Bound of a line with its stack, in characters; longer ones are cut. */
const heldMax = 16_000;
const toldMax = 300;

interface ErrorLine {
  readonly level?: unknown;
  readonly reason?: unknown;
  readonly error?: { readonly message?: unknown };
  readonly msg?: unknown;
}

export class LastError {
  #end = "";

  /** Takes output of the process. */
  take(chunk: Buffer): void {
    this.#end = (this.#end + chunk.toString("utf8")).slice(-heldMax);
  }

  /** Last line of the process that tells an error; empty: there is none. */
  get text(): string {
    for (const line of this.#end.trimEnd().split("\n").reverse()) {
      const said = errorOf(line);
      if (said !== "") return said.length > toldMax ? `${said.slice(0, toldMax)}…` : said;
    }
    return "";
  }
}

/** `SyntaxError: missing ) after argument list`, `Error [ERR_MODULE_NOT_FOUND]: Cannot find …`. */
const uncaught = /^(?:[A-Z]\w*)?Error(?: \[\w+\])?: ./;

function errorOf(line: string): string {
  if (uncaught.test(line)) return line.replaceAll(/\s+/g, " ");
  try {
    const { level, reason, error, msg } = JSON.parse(line) as ErrorLine;
    if (level !== "error") return "";
    const said = [reason, error?.message, msg].find((each): each is string => typeof each === "string" && each !== "");
    return said?.replaceAll(/\s+/g, " ") ?? "";
  } catch {
    return "";
  }
}
