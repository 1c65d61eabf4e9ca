/** Does what the commands ask for: they load it, and with it the SDKs, when they run. */
import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { release } from "@stamp/base";
import { inWords } from "@stamp/ports-node";
import { CommandError, exitCodes } from "../exit.ts";
import { withProgress } from "../progress.ts";
import { warn } from "../say.ts";
import { type AccountDoors, accountDoors } from "./doors.ts";
import { EntityRefused } from "./entity-door.ts";
import { exportSteps } from "./export.ts";
import { ArchiveReader } from "./folder/archive-reader.ts";
import { ArchiveWriter } from "./folder/archive-writer.ts";
import { DamagedArchive } from "./folder/records.ts";
import { ImportState } from "./import-state.ts";
import { countsText, type Item, type ItemCounts, noCounts, type SourcePosition, type Step } from "./items.ts";
import type { AccountPlace } from "./place.ts";
import { accountSteps, refuseDirectories, type SourceOptions } from "./source/account.ts";
import { statusOf } from "./source/answers.ts";
import { applySteps, ServiceRefused } from "./target/apply.ts";

export interface Outcome {
  readonly counts: ItemCounts;
  /** The first things that were left out, each with its reason. */
  readonly leftOut: readonly string[];
}

const leftOutShown = 20;

export async function runExport(place: AccountPlace, folder: string, options: SourceOptions): Promise<Outcome> {
  const doors = accountDoors(place);
  const leftOut: string[] = [];
  return withWords(`${place.urls.blob}`, async () => {
    await refuseDirectories(doors);
    const beginning = { account: place.account, source: place.urls.blob, options, release };
    const writer = await ArchiveWriter.open(resolve(folder), beginning);
    try {
      const about = { what: `export of ${place.account}`, afterwards: "The same command goes on where it was." };
      await withProgress(about, (tell) =>
        exportSteps(
          writer,
          (from) => accountSteps(doors, from, options),
          (item) => {
            if (item.kind === "leftOut" && leftOut.length < leftOutShown) leftOut.push(`${item.what}: ${item.why}`);
            tell(`${countsText(writer.counts)} (now: ${nameOf(item)})`);
          },
        ),
      );
      const { counts } = await writer.end();
      return { counts, leftOut };
    } finally {
      await writer.close();
    }
  });
}

export interface ImportSource {
  /** Name of the source for the state file and for people. */
  readonly name: string;
  steps(from: SourcePosition): AsyncIterable<Step>;
}

export const archiveSource = async (folder: string): Promise<ImportSource & { readonly reader: ArchiveReader }> => {
  const reader = await withWords(folder, () => ArchiveReader.open(resolve(folder)));
  const { account, source, begunOn } = reader.manifest;
  return { reader, name: `archive of ${account} at ${source}, ${begunOn}`, steps: (from) => reader.steps(from) };
};

export const accountSource = (place: AccountPlace, options: SourceOptions): ImportSource => {
  const doors = accountDoors(place);
  return { name: `account ${place.account} at ${place.urls.blob}`, steps: (from) => accountSteps(doors, from, options) };
};

/** Name of the state file of an import into this place, beside what is imported. */
export const stateName = (target: AccountPlace): string =>
  `import-${target.account}-${createHash("sha256").update(target.urls.blob).digest("hex").slice(0, 12)}.json`;

export async function runImport(
  source: ImportSource,
  target: AccountPlace,
  { merge, statePath }: { readonly merge: boolean; readonly statePath: string },
): Promise<Outcome> {
  const doors = accountDoors(target);
  const leftOut: string[] = [];
  return withWords(`${target.urls.blob}`, async () => {
    const options = merge ? "--merge" : "";
    const state = await ImportState.open({ path: statePath, source: source.name, target: target.urls.blob, options });
    try {
      await importAll(source, { doors, statePath, state, merge, leftOut });
    } finally {
      await state.close();
    }
    return { counts: state.counts, leftOut };
  });
}

interface BegunImport {
  readonly doors: AccountDoors;
  readonly statePath: string;
  readonly state: ImportState;
  readonly merge: boolean;
  readonly leftOut: string[];
}

async function importAll(source: ImportSource, { doors, statePath, state, merge, leftOut }: BegunImport): Promise<void> {
  const { counts } = state;
  await refuseDirectories(doors);
  await checkTarget(doors, statePath, state, merge);
  const told = (what: string, why: string): void => {
    if (leftOut.length < leftOutShown) leftOut.push(`${what}: ${why}`);
    else warn(`left out: ${what}: ${why}`);
  };
  await state.save(state.from, counts, true);
  const about = { what: `import into ${doors.place.account}`, afterwards: "The same command goes on where it was." };
  await withProgress(about, (tell) =>
    applySteps(
      { doors, counts, merge, again: state.isBegun, makes: (what, isThere) => state.makes(what, isThere), leftOut: told },
      source.steps(state.from),
      async ({ item, next, isDurable }) => {
        await state.save(next, counts, isDurable === true);
        tell(`${countsText(counts)} (now: ${nameOf(item)})`);
      },
    ),
  );
  await state.remove();
}

/** Reads every byte of an archive. */
export async function runVerify(source: ImportSource): Promise<ItemCounts> {
  const counts = noCounts();
  const about = { what: "reads the archive", afterwards: "Nothing was changed." };
  return withWords(source.name, () =>
    withProgress(about, async (tell) => {
      for await (const { item } of source.steps({})) {
        await countAll(counts, item);
        tell(countsText(counts));
      }
      return counts;
    }),
  );
}

async function countAll(counts: ItemCounts, item: Item): Promise<void> {
  if (item.kind === "blobs")
    for (const { facts, chunks } of item.blobs) {
      if (facts.current) counts.blobs++;
      else if (facts.snapshot !== "") counts.snapshots++;
      else counts.versions++;
      for await (const { bytes } of chunks()) counts.bytes += bytes.length;
    }
  else if (item.kind === "entities") counts.entities += item.entities.length;
  else if (item.kind === "messages") counts.messages += item.messages.length;
  else if (item.kind === "container") counts.containers++;
  else if (item.kind === "table") counts.tables++;
  else if (item.kind === "queue") counts.queues++;
  else if (item.kind === "leftOut" && !item.chosen) counts.leftOut++;
}

/** Refuses an account that has something: nothing is mixed unless that is asked for. Refuses one that has nothing of what an earlier run has put. */
async function checkTarget(doors: AccountDoors, statePath: string, { isBegun, counts }: ImportState, merge: boolean): Promise<void> {
  if (!isBegun && merge) return;
  const { blobs, tables, queues, place } = doors;
  const names: string[] = [];
  for await (const { name } of blobs.listContainers()) if (names.push(`container ${name}`) >= 3) break;
  for await (const { name } of tables.listTables()) if (names.push(`table ${name}`) >= 6) break;
  for await (const { name } of queues.listQueues()) if (names.push(`queue ${name}`) >= 9) break;
  if (names.length === 0 && counts.containers + counts.tables + counts.queues > 0)
    throw new CommandError(
      `account ${place.account} has nothing of what an earlier run has put into it, as if it were a new one: remove ${statePath} to import everything`,
      exitCodes.usage,
    );
  if (names.length === 0 || isBegun) return;
  throw new CommandError(
    `account ${place.account} is not empty (${names.slice(0, 3).join(", ")}${names.length > 3 ? ", …" : ""}): import into a new one (./stamp account create NAME), or with --merge, which replaces blobs and entities of the same names`,
    exitCodes.usage,
  );
}

export const nameOf = (item: Item): string =>
  item.kind === "blobs"
    ? `${item.container}/${item.name}`
    : item.kind === "entities"
      ? `table ${item.table}`
      : item.kind === "messages"
        ? `queue ${item.queue}`
        : item.kind === "service"
          ? `settings of ${item.service}`
          : item.kind === "leftOut"
            ? item.what
            : `${item.kind} ${item.name}`;

/** An import has two ends, and the error knows which of them it asked. */
function urlOf(error: unknown): string | undefined {
  const url = URL.parse((error as { readonly request?: { readonly url?: string } }).request?.url ?? "");
  return url === null ? undefined : url.origin;
}

/** Turns what is no bug into words. `where`: the service, if the error does not tell. */
export async function withWords<T>(where: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DamagedArchive || error instanceof ServiceRefused || error instanceof EntityRefused)
      throw new CommandError(error.message);
    const status = statusOf(error);
    const at = urlOf(error) ?? where;
    if (status !== undefined)
      throw new CommandError(`${at}: the service answers ${status} ${(error as { code?: string }).code ?? ""}`.trimEnd());
    const code = (error as { code?: unknown }).code;
    // The SDKs and fetch throw errors of their own for a server that does not answer.
    if (
      ["REQUEST_SEND_ERROR", "ECONNREFUSED", "ECONNRESET", "ENOTFOUND"].includes(String(code)) ||
      (error as Error).message === "fetch failed" ||
      (error as Error).name === "TimeoutError"
    )
      throw new CommandError(`${at} can't be reached: ${inWords(error)}; the same command goes on where it was`);
    throw error;
  }
}
