/** Stores of a real machine for tests that damage their files. */
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NodeDigest, NodeDisk, NodeKeyValueStores, NodeRandom } from "@stamp/ports-node";

/** Where a folder need not survive: in memory, if the machine has that. */
export const quickFolder: string = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();

export const storesIn = (folder: string) => ({
  keyValue: new NodeKeyValueStores(join(folder, "stores")),
  disk: new NodeDisk(join(folder, "files")),
  digest: new NodeDigest(),
  random: new NodeRandom(),
});
