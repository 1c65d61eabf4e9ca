/**
 * Refusals of the operating system in words for people. Node says `ENOENT: no such file or directory, open
 * '/backups/a'`: not which part of the path is missing, nor what to do. Everything that tells a user of a file, a
 * folder or an address asks here.
 */
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { getSystemErrorMessage } from "node:util";

/** Error with the fields that Node gives to failures of system calls. */
export interface SystemError extends Error {
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;
  readonly path?: string;
  /** Path that a file was to have, of `rename`. */
  readonly dest?: string;
  readonly address?: string;
  readonly port?: number;
}

export const isSystemError = (error: unknown): error is SystemError =>
  error instanceof Error && typeof (error as SystemError).code === "string" && typeof (error as SystemError).syscall === "string";

/** Returns an error in words; `path`: file of the error, which some errors do not name. */
export function inWords(error: unknown, path?: string): string {
  if (!isSystemError(error)) {
    const message = error instanceof Error ? error.message : String(error);
    const told = error instanceof SyntaxError ? `not JSON: ${message.replaceAll(/\s+/g, " ")}` : message;
    return path === undefined ? told : `${path}: ${told}`;
  }
  // A new file that can't take the place of another one is as it should be; the other one is not.
  const isOther = error.syscall === "rename" && ["EISDIR", "ENOTDIR", "ENOTEMPTY", "EEXIST"].includes(error.code);
  const named = (isOther ? error.dest : undefined) ?? error.path ?? path;
  if (named !== undefined) return `${ofPath(error, named)} (${error.code})`;
  return `${ofAddress(error)} (${error.code})`;
}

function ofPath(error: SystemError, path: string): string {
  switch (error.code) {
    case "ENOENT": {
      const folder = dirname(path);
      return existsSync(folder)
        ? `${path}: there is no such file or folder`
        : `${path}: there is no folder ${folder}; make it, or name another one`;
    }
    case "ENOTDIR": {
      const file = fileOnTheWay(path);
      return file === path ? `${path} is a file, not a folder` : `${path}: ${file} is a file, not a folder`;
    }
    case "EISDIR":
      return `${path} is a folder, not a file`;
    case "EEXIST":
      return `${path} is there already`;
    case "EACCES":
    case "EPERM":
      return `${path}: the user that runs this (${process.getuid?.() ?? "?"}) has no permission`;
    case "EROFS":
      return `${path} is on a file system that can't be written to`;
    case "ENOSPC":
    case "EDQUOT":
      return `${path}: there is no room left on its disk`;
    default:
      return `${path}: ${general(error)}`;
  }
}

function fileOnTheWay(path: string): string {
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) {
    if (statSync(at, { throwIfNoEntry: false })?.isDirectory() === false) return at;
  }
  return path;
}

function ofAddress(error: SystemError): string {
  const { address, port } = error;
  const at = address === undefined ? "there" : port === undefined ? address : `${address.includes(":") ? `[${address}]` : address}:${port}`;
  switch (error.code) {
    case "ECONNREFUSED":
      return `nothing listens at ${at}`;
    case "EADDRINUSE":
      return `${at} is taken by another process`;
    case "EADDRNOTAVAIL":
      return `${address ?? "it"} is no address of this machine`;
    case "EACCES":
      return `the user that runs this (${process.getuid?.() ?? "?"}) may not ${error.syscall === "connect" ? "connect to" : "listen at"} ${at}`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the host ${(error as { hostname?: string }).hostname ?? ""} can't be found`;
    default:
      return `${at}: ${general(error)}`;
  }
}

function general(error: SystemError): string {
  const known = error.errno < 0 ? getSystemErrorMessage(error.errno) : undefined;
  return `${known ?? error.message}, at ${error.syscall}`;
}
