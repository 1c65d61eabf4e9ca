/** `stamp pack`: makes the packages `stamp-storage` and `stamp-testcontainers` as tarballs that npm installs. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { repositoryRoot } from "../repository-root.ts";
import { makePackage } from "./make-package.ts";
import { makeTestcontainers } from "./make-testcontainers.ts";

const usage = `usage: ./stamp pack [--out FOLDER]
  Makes stamp-storage-VERSION.tgz and stamp-testcontainers-VERSION.tgz in FOLDER (default: the present one), and prints path, size and
  SHA-256 of each. The same sources give the same bytes. It needs npm. Install one with: npm install ./stamp-storage-VERSION.tgz
  (docs/guides/package.md)`;

async function pack(out: string, make: (root: string, folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "stamp-pack-"));
  try {
    await make(repositoryRoot, folder);
    mkdirSync(out, { recursive: true });
    const args = ["pack", folder, "--pack-destination", out, "--json", "--loglevel=error", "--ignore-scripts", "--workspaces=false"];
    const { stdout } = await promisify(execFile)("npm", args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
    const [made] = JSON.parse(stdout) as readonly { readonly filename: string; readonly unpackedSize: number }[];
    if (made === undefined) throw new Error("npm pack names no file");
    const path = join(out, made.filename);
    const bytes = readFileSync(path);
    console.log(
      `${path}\n${bytes.length} bytes, ${made.unpackedSize} unpacked\nsha256 ${createHash("sha256").update(bytes).digest("hex")}`,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const { values } = parseArgs({ options: { out: { type: "string", default: "." }, help: { type: "boolean", default: false } } });
try {
  if (values.help) console.log(usage);
  else for (const make of [makePackage, makeTestcontainers]) await pack(resolve(values.out), make);
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  console.error(`stamp: ${code === "ENOENT" ? `npm is missing: ${message}` : message}`);
  process.exitCode = 1;
}
