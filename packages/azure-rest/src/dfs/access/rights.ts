/**
 * Rights of POSIX and modes: owner, owning group, others, each with three rights, and the sticky bit. A mode has two written forms, octal
 * (`0750`, `1777`) and symbolic (`rwxr-x---`, `rwxrwxrwt`). Requests may have either, answers have the symbolic one.
 *
 * Sources: "Path - Create" (`x-ms-permissions`, `x-ms-umask`) and "Access control lists in Azure Data Lake Storage".
 */
import { badHeader, type Parsed, parsed } from "../../rest-error.ts";

/** Bits of a set of rights, which is a number from 0 to 7. */
export const readRight = 4;
export const writeRight = 2;
export const executeRight = 1;
export const allRights = 7;

export interface Mode {
  /** Sets of rights. */
  readonly owner: number;
  readonly group: number;
  readonly other: number;
  readonly sticky: boolean;
}

/** The umask of a request that names none: 0027. */
export const defaultUmask: Mode = { owner: 0, group: writeRight, other: allRights, sticky: false };

const texts = ["---", "--x", "-w-", "-wx", "r--", "r-x", "rw-", "rwx"] as const;

/** Returns the rights as three characters: `r-x`. */
export const rightsText = (rights: number): string => texts[rights & allRights] as string;

/** Parses three characters, each in its place and in lower case; undefined for anything else. */
export function parseRights(text: string): number | undefined {
  const rights = (texts as readonly string[]).indexOf(text);
  return rights < 0 ? undefined : rights;
}

/** Returns the symbolic form. `extended` puts a plus behind it: the path has more in its lists than a mode can say. */
export function modeText({ owner, group, other, sticky }: Mode, extended = false): string {
  const last = rightsText(other);
  const others = sticky ? last.slice(0, 2) + (other & executeRight ? "t" : "T") : last;
  return rightsText(owner) + rightsText(group) + others + (extended ? "+" : "");
}

/** Returns the octal form, with four digits. */
export const modeOctal = ({ owner, group, other, sticky }: Mode): string => `${sticky ? 1 : 0}${owner}${group}${other}`;

const octal = /^([01])([0-7])([0-7])([0-7])$/;

function parseOctal(text: string): Mode | undefined {
  const [match, sticky, owner, group, other] = octal.exec(text) ?? [];
  return match === undefined ? undefined : { owner: Number(owner), group: Number(group), other: Number(other), sticky: sticky === "1" };
}

/** Parses a symbolic mode. A plus at the end means nothing in a request: clients send back what they read. */
function parseSymbolic(text: string): Mode | undefined {
  const [match, ownerText = "", groupText = "", read = "", last = ""] = /^(...)(...)(..)(.)\+?$/.exec(text) ?? [];
  if (match === undefined) return undefined;
  const sticky = last === "t" || last === "T";
  const owner = parseRights(ownerText);
  const group = parseRights(groupText);
  const other = parseRights(read + (last === "t" ? "x" : last === "T" ? "-" : last));
  return owner === undefined || group === undefined || other === undefined ? undefined : { owner, group, other, sticky };
}

/** Parses the value of `x-ms-permissions`. */
export function parsePermissions(text: string): Parsed<Mode> {
  const mode = parseOctal(text) ?? parseSymbolic(text);
  return mode ? parsed(mode) : badHeader("x-ms-permissions", text, "Write rwxr-x--- or 0750, with rwxr-x--T or 1750 for the sticky bit.");
}

/** Parses the value of `x-ms-umask`, which has an octal form only and no sticky bit. */
export function parseUmask(text: string): Parsed<Mode> {
  const mode = parseOctal(text);
  return mode && !mode.sticky ? parsed(mode) : badHeader("x-ms-umask", text, "Four octal digits from 0000 to 0777.");
}

/** Takes the rights of the umask away; the sticky bit stays. */
export const maskedBy = (mode: Mode, umask: Mode): Mode => ({
  owner: mode.owner & ~umask.owner,
  group: mode.group & ~umask.group,
  other: mode.other & ~umask.other,
  sticky: mode.sticky,
});
