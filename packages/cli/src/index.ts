/**
 * The command line for tests: exit codes, the drill of damage, which asks fsck, the maker of certificates, and the
 * release before.
 * Everything else is a command: `./stamp --help`.
 */
export { damageRoles, runDamageDrill } from "./drills/damage-drill.ts";
export { exitCodes } from "./exit.ts";
/** The release before feature levels as programs; needs the repository's history, so only tests ask for it. */
export const releaseBefore = (): Promise<typeof import("./upgrade/release-before.ts")> => import("./upgrade/release-before.ts");
/** Loads the maker of certificates at its first use. */
export const certificates = (): Promise<typeof import("./certificates/certificates.ts")> => import("./certificates/certificates.ts");
