/** Permissions of files and directories: their form as text (SDDL), and the form that a request says its permission has. */
import type { HttpHeaders } from "../headers.ts";
import { badHeader, notImplemented, type Parsed, parsed } from "../rest-error.ts";

const sid = "(?:[A-Z]{2}|S-1(?:-(?:\\d+|0x[0-9A-F]+))+)";
/** An entry in parentheses. Conditions in it have parentheses of their own. */
const entry = "\\((?:[^()]|\\((?:[^()]|\\((?:[^()]|\\([^()]*\\))*\\))*\\))*\\)";
const list = `[A-Z_]*(?:${entry})*`;
const descriptor = new RegExp(`^(?:O:${sid})?(?:G:${sid})?(?:D:${list})?(?:S:${list})?$`, "i");

/** True if the text has the form of a security descriptor: owner, group, and lists of entries; what its entries mean is not looked at. */
export const isSddl = (text: string): boolean => text !== "" && descriptor.test(text);

const formatHeader = "x-ms-file-permission-format";

/** Checks what a request says of the form of its permission. Only text is kept and shown. */
export function checkPermissionFormat(headers: HttpHeaders, inBody?: unknown): Parsed<undefined> {
  const format = headers[formatHeader] ?? inBody;
  const word = typeof format === "string" ? format.toLowerCase() : format;
  if (word === undefined || word === "sddl") return parsed(undefined);
  if (word === "binary") return notImplemented(`Permissions in binary form (${formatHeader})`);
  return badHeader(formatHeader, String(format), "sddl, or nothing.");
}
