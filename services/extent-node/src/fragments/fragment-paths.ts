/** Names of the files of fragments (docs/formats/fragment.md). */
import { type ExtentId, extentId, extentVersion } from "@stamp/base";
import type { FragmentName } from "@stamp/extent";
import type { World } from "@stamp/ports";

export const fragmentsFolder = "fragments";
const suffix = ".fragment";
export const fragmentMakingSuffix = ".making";

const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, "0");
export const fragmentFolderOf = (id: ExtentId): string => `${fragmentsFolder}/${hex(id % 256, 2)}`;
const baseOf = ({ extentId: id, version, index }: FragmentName): string =>
  `${fragmentFolderOf(id)}/${hex(id, 14)}-${hex(version, 14)}-${hex(index, 2)}`;
/** Returns the path of an unfinished fragment. */
export const fragmentMakingPath = (name: FragmentName): string => `${baseOf(name)}${fragmentMakingSuffix}`;
export const fragmentPath = (name: FragmentName): string => `${baseOf(name)}${suffix}`;

/** Returns the name that a path below `fragments` says, or undefined if it is no fragment's. */
export function fragmentNameOf(path: string): FragmentName | undefined {
  const match = /\/([0-9a-f]{14})-([0-9a-f]{14})-([0-9a-f]{2})\.fragment$/.exec(path);
  if (match === null) return undefined;
  const [id, version, index] = match.slice(1).map((part) => Number.parseInt(part, 16)) as [number, number, number];
  if (id === 0 || version === 0 || !Number.isSafeInteger(id) || !Number.isSafeInteger(version)) return undefined;
  const name = { extentId: extentId(id), version: extentVersion(version), index };
  return fragmentPath(name) === path ? name : undefined;
}

/** Returns the path of every file below `fragments` that ends like a fragment's. */
export async function fragmentPaths(world: Pick<World, "disk">): Promise<string[]> {
  const paths: string[] = [];
  for (const folder of await world.disk.list(fragmentsFolder))
    for (const file of await world.disk.list(`${fragmentsFolder}/${folder}`))
      if (file.endsWith(suffix)) paths.push(`${fragmentsFolder}/${folder}/${file}`);
  return paths;
}
