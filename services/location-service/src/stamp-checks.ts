/** Checks of a stamp that is to be added to a location, or to have a copy. */
import type { Outcome } from "@stamp/base";
import { ok, refused } from "@stamp/base";
import type { StampRecord } from "@stamp/geo";

const isName = (text: string): boolean => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(text);

/** Returns what is wrong with the fields of a stamp; undefined: nothing. */
export function wrongStamp({ name, location, lockService, secret, doors }: Omit<StampRecord, "stampId" | "state">): string | undefined {
  const wrongDoor = doors?.find((door) => !/^[^\s,]+:\d+$/.test(door));
  if (wrongDoor !== undefined) return `door ${JSON.stringify(wrongDoor)}: host:port of a front-end`;
  for (const [what, text] of [
    ["name", name],
    ["location", location],
  ] as const) {
    if (!isName(text)) return `${what} ${JSON.stringify(text)}: 1 to 63 lower-case letters, digits and hyphens, no hyphen first or last`;
  }
  if (secret !== "" && !isName(secret)) return `secret ${JSON.stringify(secret)}: the name of a file in stampSecretsDir, without a path`;
  if (!/^[^\s,]+:\d+(?:,[^\s,]+:\d+)*$/.test(lockService))
    return `lock service ${JSON.stringify(lockService)}: host:port, of several separated by commas`;
  return undefined;
}

/** Returns why a stamp can't be recorded: another one has its name, or it has another name. Undefined: it can. */
export function conflictOf(record: StampRecord, stamps: readonly StampRecord[]): string | undefined {
  for (const other of stamps) {
    if (other.name === record.name && other.stampId !== record.stampId)
      return `stamp ${record.name} is ${other.stampId}; the one at ${record.lockService} is ${record.stampId}: give it another name`;
    if (other.name !== record.name && other.stampId === record.stampId)
      return `the stamp at ${record.lockService} is known already, as ${other.name}`;
  }
  return undefined;
}

/** True if the location knows front-ends of the stamp: other stamps ship to these. */
export const hasDoors = (stamp: StampRecord | undefined): boolean => (stamp?.doors ?? []).length > 0;

/** Refuses a stamp to which another one could ship nothing. */
export function withDoors(name: string, stamp: StampRecord | undefined): Outcome<void> {
  if (hasDoors(stamp)) return ok();
  const message = `the location knows no front-ends of stamp ${name}, so that no other stamp can send it a copy: add it again with --doors HOST:PORT (./stamp location add --help)`;
  return refused("failedPrecondition", "notReady", message);
}
