/**
 * The file `formats` of every data folder: each format that was ever written here, its highest version, and the release that began it.
 * docs/formats/versions.md.
 *
 * A start goes in this order:
 *  1. `refuseNewer` reads. What a newer release wrote refuses the start, and nothing in the folder has changed.
 *  2. `raiseFormats` writes the marker, durably.
 *  3. Only then is anything else written, so a format never lies in a folder whose marker does not name it.
 *
 * An intact marker therefore vouches for the whole folder. Without one (older releases wrote none) the role looks at the data themselves.
 *
 * The marker also holds the feature level that the process has heard, as the format `feature-level`: a release that knows a lower level, or none,
 * does not start in the folder. A version that a level brings is named only at that level (`versionAtLevel`).
 */
import {
  FailureError,
  type FormatName,
  formatVersions,
  fromUtf8,
  newerFormat,
  type Outcome,
  ok,
  release,
  unknownFormat,
  utf8,
  versionAtLevel,
} from "@stamp/base";
import type { World } from "../world.ts";

export const formatMarkerFile = "formats";

export interface MarkedFormat {
  readonly version: number;
  /** Release that began this version here. */
  readonly release: string;
}

export type FormatMarker = Readonly<Record<string, MarkedFormat>>;

type MarkerWorld = Pick<World, "disk" | "digest" | "rules">;

export function encodeFormatMarker(marker: FormatMarker, crc32c: (bytes: Uint8Array) => number): Uint8Array<ArrayBuffer> {
  const text = JSON.stringify(marker);
  return utf8(`${text}\n${crc32c(utf8(text)).toString(16).padStart(8, "0")}\n`);
}

/** Returns undefined for what `encodeFormatMarker` does not write. */
export function decodeFormatMarker(bytes: Uint8Array, crc32c: (bytes: Uint8Array) => number): FormatMarker | undefined {
  try {
    const [text = "", checksum, end, more] = fromUtf8(bytes).split("\n");
    if (end !== "" || more !== undefined || crc32c(utf8(text)).toString(16).padStart(8, "0") !== checksum) return undefined;
    const marker = JSON.parse(text) as Record<string, Partial<MarkedFormat> | null>;
    const valid = (each: Partial<MarkedFormat> | null): boolean => Number.isSafeInteger(each?.version) && typeof each?.release === "string";
    return Object.values(marker).every(valid) ? (marker as FormatMarker) : undefined;
  } catch {
    return undefined;
  }
}

async function readMarker({ disk, digest }: MarkerWorld): Promise<FormatMarker | undefined> {
  const held = await disk.readWhole(formatMarkerFile);
  return held && decodeFormatMarker(held, (bytes) => digest.crc32c(bytes));
}

/**
 * Refuses a folder in which a newer release wrote, before anything in it is touched. `look` reads the data themselves; `marked` tells it that
 * the marker vouches for the folder, so that it may leave out what takes long. Refused with `newerFormat`.
 */
export async function refuseNewer(
  world: MarkerWorld,
  look: (marked: boolean) => Promise<Outcome<void>> = async () => ok(),
): Promise<Outcome<void>> {
  if (!world.rules.on("newerFormatsRefused")) return ok();
  const marker = await readMarker(world);
  for (const [format, { version, release: writer }] of Object.entries(marker ?? {})) {
    if (!Object.hasOwn(formatVersions, format)) return unknownFormat(`the file ${formatMarkerFile} of this folder`, format, writer);
    const name = format as FormatName;
    if (version > formatVersions[name]) return newerFormat("what this folder holds", { format: name, version }, writer);
  }
  return look(marker !== undefined);
}

/** Raises the marker of the folder to these formats at this level, durably, before they are written. Lowers nothing. */
export async function raiseFormats(world: MarkerWorld, formats: readonly FormatName[], level: number): Promise<void> {
  await inTurn(world.disk, async () => raise(world, (await readMarker(world)) ?? {}, formats, level));
}

/** Notes a feature level of the stamp in the folder's marker, durably, with the versions that it brings of the formats written here. */
export async function raiseFeatureLevel(world: MarkerWorld, level: number): Promise<void> {
  if (level === 0) return;
  await inTurn(world.disk, async () => {
    const held = (await readMarker(world)) ?? {};
    const known = Object.keys(held).filter((format): format is FormatName => Object.hasOwn(formatVersions, format));
    await raise(world, held, [...known, "feature-level"], level);
  });
}

/** True if the folder's marker says that `format` was written here. */
export async function hasWritten(world: MarkerWorld, format: FormatName): Promise<boolean> {
  return Object.hasOwn((await readMarker(world)) ?? {}, format);
}

/** Returns the feature level that was noted in the folder; 0: none. */
export async function notedFeatureLevel(world: MarkerWorld): Promise<number> {
  return levelIn((await readMarker(world)) ?? {});
}

const levelIn = (marker: FormatMarker): number => marker["feature-level"]?.version ?? 0;

async function raise(world: MarkerWorld, held: FormatMarker, formats: readonly FormatName[], level: number): Promise<void> {
  const raised: Record<string, MarkedFormat> = { ...held };
  for (const format of formats) {
    const version = format === "feature-level" ? level : versionAtLevel(format, formatVersions[format], level);
    if ((held[format]?.version ?? 0) < version) raised[format] = { version, release };
  }
  if (Object.keys(raised).every((format) => raised[format] === held[format])) return;
  await world.disk.writeAtomically(
    formatMarkerFile,
    encodeFormatMarker(raised, (bytes) => world.digest.crc32c(bytes)),
  );
}

/** Last change of the marker of each disk: a change reads the marker and writes it whole, so two at a time would lose one. */
const turns = new WeakMap<MarkerWorld["disk"], Promise<void>>();

async function inTurn(disk: MarkerWorld["disk"], change: () => Promise<void>): Promise<void> {
  const before = turns.get(disk) ?? Promise.resolve();
  const made = before.then(change);
  // A failed change is told to its caller, and does not stop the next.
  turns.set(
    disk,
    made.catch(() => {}),
  );
  await made;
}

/** Refuses newer formats and raises the marker, for a role without data to look at. Throws FailureError `newerFormat`. */
export async function claimFolder(world: MarkerWorld, formats: readonly FormatName[] = []): Promise<void> {
  const refusal = await refuseNewer(world);
  if (!refusal.ok) throw new FailureError(refusal.failure);
  await inTurn(world.disk, async () => {
    const held = (await readMarker(world)) ?? {};
    // Below a level, nothing that it brings is written yet, and the release before may still start here.
    await raise(world, held, ["formats", "identity-store", ...formats], levelIn(held));
  });
}
