/**
 * Takes the names of functions for debuggers out of node's own file while the image is built: 33 MB of 150. They lie behind everything that
 * the system loads, so the file ends there, and says that it has no sections. A file of another kind is left as it is.
 */
import { execFileSync } from "node:child_process";
import { readFileSync, renameSync, writeFileSync } from "node:fs";

const path = process.execPath;
const bytes = readFileSync(path);
const isElf64 = bytes.readUInt32BE(0) === 0x7f454c46 && bytes[4] === 2 && bytes[5] === 1;
if (isElf64) {
  const headersAt = Number(bytes.readBigUInt64LE(32));
  const headerBytes = bytes.readUInt16LE(54);
  let end = headersAt;
  for (let i = 0; i < bytes.readUInt16LE(56); i++) {
    const at = headersAt + i * headerBytes;
    end = Math.max(end, Number(bytes.readBigUInt64LE(at + 8) + bytes.readBigUInt64LE(at + 32)));
  }
  const smaller = bytes.subarray(0, end);
  smaller.writeBigUInt64LE(0n, 40);
  smaller.writeUInt32LE(0, 60);
  writeFileSync(`${path}.smaller`, smaller, { mode: 0o755 });
  // Runs before it takes the place of the other.
  execFileSync(`${path}.smaller`, ["-p", "process.version"], { stdio: "inherit" });
  renameSync(`${path}.smaller`, path);
}
