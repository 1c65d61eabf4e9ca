/** The fragments on the disk of an extent node that does not run, for `stamp fsck`. Nothing is changed. */
import type { FragmentName, NodeIdentity } from "@stamp/extent";
import type { World } from "@stamp/ports";
import { type DiskQueue, scrubIo } from "../disk/disk-queue.ts";
import type { ExtentFiles } from "../disk/extent-files.ts";
import { FragmentFiles } from "./fragment-files.ts";
import { fragmentNameOf, fragmentsFolder } from "./fragment-paths.ts";

export interface CheckedFragment extends FragmentName {
  /** Damage of the fragment, in words; empty if none. */
  readonly damage: string;
}

export interface CheckedFragments {
  readonly fragments: readonly CheckedFragment[];
  /** Files below `fragments` that are no fragment, and not one that was never finished. */
  readonly strayPaths: readonly string[];
}

/** Reads the head and the checksums of every fragment; with `deep` every byte. */
export async function checkFragments(
  world: World,
  files: ExtentFiles,
  queue: DiskQueue,
  identity: NodeIdentity,
  deep: boolean,
): Promise<CheckedFragments> {
  const held = await FragmentFiles.open(world, files, queue, identity, true);
  const fragments: CheckedFragment[] = [];
  for (const name of held.names()) {
    if (deep) {
      const verified = await held.verify(name, scrubIo);
      fragments.push({ ...name, damage: verified?.kind === "bad" ? verified.why : "" });
      continue;
    }
    const head = await held.head(name, scrubIo);
    fragments.push({ ...name, damage: head.ok ? "" : head.failure.message });
  }
  const strayPaths: string[] = [];
  for (const folder of await world.disk.list(fragmentsFolder))
    for (const file of await world.disk.list(`${fragmentsFolder}/${folder}`)) {
      const path = `${fragmentsFolder}/${folder}/${file}`;
      if (fragmentNameOf(path) === undefined && !file.endsWith(".making")) strayPaths.push(path);
    }
  return { fragments, strayPaths };
}
