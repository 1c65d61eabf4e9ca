/** Packs folders of packages into tarballs for npm. Two packings of the same folder give the same bytes. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { makePackage } from "./make-package.ts";
import { makeTestcontainers } from "./make-testcontainers.ts";

export interface PackedTarball {
  readonly path: string;
  /** Size of the tarball, in bytes. */
  readonly bytes: number;
  /** Size of the package's files, in bytes. */
  readonly unpackedBytes: number;
  /** SHA-256 of the tarball, in hex. */
  readonly sha256: string;
}

export const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Makes the tarballs of all packages in the folder `out`, and tells each when it is there. Throws Error if npm is missing or fails. */
export async function packAll(root: string, out: string, tell: (packed: PackedTarball) => void): Promise<void> {
  mkdirSync(out, { recursive: true });
  for (const make of [makePackage, makeTestcontainers]) {
    const folder = mkdtempSync(join(tmpdir(), "stamp-pack-"));
    try {
      await make(root, folder);
      tell(await pack(folder, out));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
}

async function pack(folder: string, out: string): Promise<PackedTarball> {
  const args = ["pack", folder, "--pack-destination", out, "--json", "--loglevel=error", "--ignore-scripts", "--workspaces=false"];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
  const [made] = JSON.parse(stdout) as readonly { readonly filename: string; readonly unpackedSize: number }[];
  if (made === undefined) throw new Error("npm pack names no file");
  const path = join(out, made.filename);
  const bytes = readFileSync(path);
  return { path, bytes: bytes.length, unpackedBytes: made.unpackedSize, sha256: sha256Of(bytes) };
}
