/**
 * The audit log of a console: lines of JSON in the folder of the logs, where `stamp logs --audit` finds them; on standard error where the
 * stamp has no folder here.
 *
 * Invariants:
 * - A line that the file does not take, e.g. of a full disk, goes to standard error. Part of it may be in the file: the next one begins anew.
 * - No character of a line moves the cursor of a terminal, or turns the direction of its text.
 */
import { auditPrefix } from "../logs/log-entry.ts";
import { printableJson } from "../printable.ts";
import type { Fields } from "./data/fields.ts";

/** Number of refused attempts in the log. It has a bound, because any program of this machine can make attempts. */
const refusedMax = 1_000;

export interface AuditPlaces {
  /** Appends text to the file. Throws if it can't. Undefined: there is no file. */
  readonly append: ((text: string) => void) | undefined;
  /** Writes text to standard error. */
  readonly warn: (text: string) => void;
  readonly wallMs: () => number;
}

/** Returns what writes a line: who did what, with which result, to which thing. */
export function auditLog({ append, warn, wallMs }: AuditPlaces): (who: string, what: string, result: string, target?: Fields) => void {
  let refused = 0;
  let isCut = false;
  return (who, what, result, target) => {
    if (result === "refused" && ++refused > refusedMax) return;
    const head = { level: "info", time: new Date(wallMs()).toISOString(), name: "console", msg: `${auditPrefix}${what}`, who };
    const isLast = result === "refused" && refused === refusedMax;
    const told = isLast ? "refused; further refused attempts are not logged until the console starts again" : result;
    const line = `${printableJson(JSON.stringify({ ...head, result: told, ...(target === undefined ? {} : { target }) }))}\n`;
    if (append === undefined) return warn(line);
    try {
      append(isCut ? `\n${line}` : line);
      isCut = false;
    } catch (error) {
      isCut = true;
      warn(
        `stamp: the audit log can't be written: ${(error as Error).message}. Free its disk, or set the rights of its folder. The line:\n${line}`,
      );
    }
  };
}
