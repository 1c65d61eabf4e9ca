/** Files that people write, on the disk of this machine. */
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { WrittenFile, WrittenFiles } from "@stamp/ports";
import { inWords, isSystemError } from "./in-words.ts";
import { parsePlacedJson } from "./written-json.ts";

export const nodeWrittenFiles: WrittenFiles = {
  resolve,
  folderOf: dirname,
  kindOf: async (path) => {
    try {
      const found = await stat(path);
      return found.isDirectory() ? "folder" : found.isFile() ? "file" : undefined;
    } catch (error) {
      if (isSystemError(error) && (error.code === "ENOENT" || error.code === "ENOTDIR")) return undefined;
      throw new Error(inWords(error, path));
    }
  },
  list: async (folder, max) => {
    const files: WrittenFile[] = [];
    await told(folder, () => listInto(files, folder, "", max));
    return files;
  },
  async *read(path) {
    try {
      for await (const piece of createReadStream(path)) yield piece as Buffer;
    } catch (error) {
      throw new Error(inWords(error, path));
    }
  },
  parse: parsePlacedJson,
};

/** Follows links to files, not to folders, which may go in a circle. */
async function listInto(files: WrittenFile[], folder: string, below: string, max: number): Promise<void> {
  const entries = await readdir(join(folder, below), { withFileTypes: true });
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = below === "" ? entry.name : `${below}/${entry.name}`;
    if (entry.isDirectory()) await listInto(files, folder, path, max);
    else if (entry.isFile() || entry.isSymbolicLink()) {
      const found = await stat(join(folder, path));
      if (!found.isFile()) continue;
      if (files.length === max) throw new Error(`${folder} has more than ${max} files`);
      files.push({ path, bytes: found.size });
    }
  }
}

async function told<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw isSystemError(error) ? new Error(inWords(error, path)) : error;
  }
}
