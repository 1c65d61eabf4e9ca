/** The last line of a file of lines. */
import { open } from "node:fs/promises";
import { plainSize } from "./files.ts";

const bytesMax = 64 * 1024;

export async function lastLine(path: string): Promise<string> {
  const size = await plainSize(path);
  const file = await open(path, "r");
  try {
    const bytes = Buffer.alloc(Math.min(size, bytesMax));
    await file.read(bytes, 0, bytes.length, size - bytes.length);
    return bytes.toString("utf8").trimEnd().split("\n").at(-1) ?? "";
  } finally {
    await file.close();
  }
}
