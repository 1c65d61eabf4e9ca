/** Looks into the folders of lock services below a data folder: their content says more about a stamp than a default does. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const folderOf = /^lock-service-([1-5])$/;

const namesIn = (path: string): readonly string[] => (existsSync(path) ? readdirSync(path) : []);

const membersIn = (dataDir: string): readonly string[] =>
  namesIn(dataDir).filter(
    (name) => folderOf.test(name) && namesIn(join(dataDir, name, "stores")).some((each) => each.startsWith("consensus-")),
  );

/**
 * Returns the number of lock services of the stamp in a folder without a record; undefined: there is none. One of them, or its folder, may be
 * gone.
 */
export function lockServicesIn(dataDir: string): number | undefined {
  const numbers = namesIn(dataDir).flatMap((name) => {
    const number = folderOf.exec(name)?.[1];
    return number === undefined || !existsSync(join(dataDir, name, "stores")) ? [] : [Number(number)];
  });
  if (numbers.length === 0) return undefined;
  const highest = Math.max(...numbers);
  return membersIn(dataDir).length === 0 ? highest : Math.max(3, highest + ((highest + 1) % 2));
}

/** True if lock services of this folder have replicated its metadata: no other store of the folder has them. */
export const replicatesIn = (dataDir: string): boolean => membersIn(dataDir).length > 0 && !hasStoreOfOwn(dataDir);

/** True if the first lock service has a store of its own that was not taken over yet: only then there is a way back to one. */
const hasStoreOfOwn = (dataDir: string): boolean => existsSync(join(dataDir, "lock-service-1", "files", "metadata-mark"));

/** Returns the names of lock services that have replicated the metadata in this folder, and are not among the first `count`, which are started. */
export const membersLeftOut = (dataDir: string, count: number): readonly string[] =>
  membersIn(dataDir).filter((name) => Number(folderOf.exec(name)?.[1]) > count);
