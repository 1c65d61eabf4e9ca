/**
 * Finds the store of a member in the folder of its process. A store that is damaged is left as it is, for people, and the member begins an empty one
 * beside it: the others give it everything (docs/design/consensus.md).
 *
 *   consensus-store       number of the store that counts; absent: 1
 *   stores/consensus-<n>  that store; the one that was set aside last is n - 1
 *
 * Invariants:
 *   - Nothing is written to a damaged store. A member that has set one aside begins no stamp, as an empty one may.
 *   - One store that was set aside is kept: damage that comes again does not fill the disk.
 *   - A folder with a member's rows has no other store: not one that is served alone, nor a restored one.
 */
import { fromUtf8, type Outcome, ok, refused, utf8 } from "@stamp/base";
import { hasWritten, type World } from "@stamp/ports";
import { MemberStore, type StoredMember } from "./member-store.ts";

export interface Folder {
  readonly store: MemberStore;
  readonly stored: StoredMember;
  /** Number of the store. */
  readonly number: number;
}

const numberPath = "consensus-store";
/** Returns the name of a member's store, by its number. */
export const memberStoreName = (number: number): string => `consensus-${number}`;

/** Opens the folder. Refuses with `newerFormat` if a newer release wrote the store. */
export async function openFolder(world: World): Promise<Outcome<Folder>> {
  for (let tries = 0; tries < 3; tries++) {
    const number = await numberIn(world);
    const opened = await MemberStore.open(world, memberStoreName(number));
    if (opened.ok) return ok({ ...opened.value, number });
    if (opened.failure.reason !== "damaged") return opened;
    await setStoreAside(world, opened.failure.message);
  }
  return refused(
    "dataLoss",
    "damaged",
    "three stores of this member were damaged one after another: look at its disk, and at the log above",
  );
}

/** Opens the store of a stopped member that has rows, and sets nothing aside. */
export async function openToRead(world: World): Promise<Outcome<Omit<Folder, "number">>> {
  const opened = await MemberStore.open(world, memberStoreName(await numberIn(world)));
  if (!opened.ok) return opened;
  const { store } = opened.value;
  if (store.lineage.length > 0) return opened;
  await store.close();
  return refused("notFound", "notReady", "it holds nothing: the other lock services have what there is");
}

/**
 * Refused if the folder has a member's store with rows, or a damaged one: beside it no other store is made, filled or served. What that one held
 * would be older, or another stamp.
 */
export async function refuseBesideMember(world: World): Promise<Outcome<void>> {
  if (!(await hasWritten(world, "consensus"))) return ok();
  const member = await openToRead(world);
  if (!member.ok && member.failure.code === "notFound") return ok();
  if (member.ok) await member.value.store.close();
  return refused(
    "failedPrecondition",
    "badRequest",
    "the metadata are in this folder as lock services replicate them: start as many lock services as before (lockServices 3 or 5; metadataStore " +
      "replicated, and `members`); also if a majority of them is lost, for a restore (docs/guides/metadata.md)",
  );
}

/** Leaves a closed store where it is; the next one that is opened is empty. */
export async function setStoreAside(world: World, why: string): Promise<void> {
  const number = await numberIn(world);
  world.logger.error("the member's store is set aside; an empty one takes everything from the other members", {
    store: memberStoreName(number),
    why,
  });
  await world.keyValue.destroy(memberStoreName(number + 1));
  await world.disk.writeAtomically(numberPath, utf8(String(number + 1)));
  if (number > 1) await world.keyValue.destroy(memberStoreName(number - 1));
}

/** Reads a number. An unreadable one is as good as none: no member believes its own folder. */
async function numberIn({ disk }: Pick<World, "disk">): Promise<number> {
  const content = await disk.readWhole(numberPath);
  const number = content === undefined ? 1 : Number(fromUtf8(content));
  return Number.isSafeInteger(number) && number >= 1 ? number : 1;
}
