/** `stamp pack`: makes the packages `stamp-storage` and `stamp-testcontainers` as tarballs that npm installs. */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "../repository-root.ts";
import { packAll } from "./pack.ts";

const usage = `usage: ./stamp pack [--out FOLDER]
  Makes stamp-storage-VERSION.tgz and stamp-testcontainers-VERSION.tgz in FOLDER (default: the present one), and prints path, size and
  SHA-256 of each. The same sources give the same bytes. It needs npm. Install one with: npm install ./stamp-storage-VERSION.tgz
  (docs/guides/package.md)`;

const { values } = parseArgs({ options: { out: { type: "string", default: "." }, help: { type: "boolean", default: false } } });
try {
  if (values.help) console.log(usage);
  else
    await packAll(repositoryRoot, resolve(values.out), ({ path, bytes, unpackedBytes, sha256 }) =>
      console.log(`${path}\n${bytes} bytes, ${unpackedBytes} unpacked\nsha256 ${sha256}`),
    );
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  console.error(`stamp: ${code === "ENOENT" ? `npm is missing: ${message}` : message}`);
  process.exitCode = 1;
}
