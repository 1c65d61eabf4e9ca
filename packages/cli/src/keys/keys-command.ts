/** `stamp keys show|rotate-master|reseal`: the master keys that seal secrets of accounts at rest, and their rotation without a stop. */
import { existsSync } from "node:fs";
import { type ClusterConfig, masterKeyPath, recordSealedBy } from "@stamp/cluster";
import {
  addNextMasterKey,
  dropNextMasterKey,
  forgetPreviousMasterKey,
  inWords,
  type MasterKeyFiles,
  type MasterKeyState,
  masterKeyFilesOf,
  masterKeyState,
  useNextMasterKey,
} from "@stamp/ports-node";
import type { Command } from "commander";
import { CommandError, configOf } from "../context.ts";
import { counted } from "../health/counted.ts";
import type { StampFacts } from "../health/facts.ts";
import { gather } from "../health/gather.ts";
import { table } from "../print.ts";
import { withProgress } from "../progress.ts";
import { inspect, make as makeBelow, type Transport, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";
import { whole } from "../values.ts";
import { forgetPreviousKey, type KeyDoor, type KeyHolder, type KeyRotated, type RowsByKey, rotateMasterKey } from "./key-rotation.ts";
import { masterKeysTold } from "./keys-told.ts";
import { accountsAt, type ResealDoor, resealRows } from "./reseal-rows.ts";

const askEveryMs = 300;
/** A range whose server died is served elsewhere after a lease term and its load; on a busy machine later. */
const servedWithinMs = 60_000;
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, askEveryMs));

export function addKeys(program: Command): void {
  const keys = topLevel(program, "keys");
  const make = (name: string, about: string): Command =>
    makeBelow(keys, name, about).option(
      "--master-key-file <file>",
      "file with the master key (default: that of the partition servers here)",
    );

  make("show", "which master key seals, which ones each partition server opens with, and which rows each key seals").action(
    async (_options, command: Command) => {
      const config = configOf(command);
      const files = filesFor(command, config);
      const found = await inspect(command, async (inspector, transport) => ({
        file: files.current,
        ...(existsSync(files.current) ? inCommand(() => masterKeyState(files)) : {}),
        rows: (
          await resealRows(
            doorTo(inspector, transport, 0, () => {}),
            "",
          )
        ).rows,
        partitionServers: await holdersOf(config, transport),
      }));
      tell(command, found, showText);
    },
  );
  make("rotate-master", "replace the master key while the stamp serves; run it again to go on with a rotation that was left")
    .option("--forget-previous", "remove the key before, which copies and backups made before the rotation need")
    .option("--timeout <s>", "longest wait for all partition servers before each step, in seconds", whole(1, 99_999), "60")
    .addHelpText(
      "after",
      `
Examples:
  stamp keys rotate-master                      a new key; the one before is kept
  stamp keys rotate-master --forget-previous    when no copy or backup needs the key before any more`,
    )
    .action(async (_options, command: Command) => {
      const { timeout, forgetPrevious } = command.opts<{ timeout: string; forgetPrevious?: boolean }>();
      const config = configOf(command);
      const files = filesFor(command, config);
      const lead = forgetPrevious === true ? forgetPreviousKey : rotateMasterKey;
      const rotated = await led(command, config, files, (door) => lead(door, Number(timeout) * 1_000));
      tell(command, { file: files.current, ...rotated }, rotatedText);
    });
  make("reseal", "seal every account's row by the current key: after a key that is kept elsewhere was changed")
    .addHelpText("after", "\nExample:\n  stamp keys reseal --json")
    .action(async (_options, command: Command) => {
      const config = configOf(command);
      const sealed = await led(command, config, undefined, async (door) => {
        const [first] = (await door.holders()).flatMap(({ ids }) => ids?.slice(0, 1) ?? []);
        if (first === undefined) throw new CommandError("no partition server has a master key (docs/guides/keys-at-rest.md)");
        const differs = (await door.holders()).find(({ state, ids }) => state !== "down" && ids?.[0] !== first);
        if (differs !== undefined)
          throw new CommandError(`${differs.name} does not seal with master key ${first}, as others do: ./stamp keys show`);
        return { id: first, ...(await door.reseal(first)) };
      });
      tell(command, sealed, ({ id, rows, resealed }) => `${counted(resealed, "row")} sealed anew\n\n${rowsText(rows, id)}`);
    });
}

/** Calls `work` with a door to the running stamp. `files`: undefined for work that changes no file. */
function led<T>(
  command: Command,
  config: ClusterConfig,
  files: MasterKeyFiles | undefined,
  work: (door: KeyDoor) => Promise<T>,
): Promise<T> {
  const about = {
    what: "looking at the partition servers",
    afterwards: "The stamp serves with the master keys that it has; run the command again to go on.",
  };
  return inspect(command, (inspector, transport) =>
    withProgress(about, async (say) => {
      const step = (change: (files: MasterKeyFiles) => void) => (): void => inCommand(() => change(files as MasterKeyFiles));
      return work({
        state: () => inCommand(() => masterKeyState(files as MasterKeyFiles)),
        add: step(addNextMasterKey),
        use: step(useNextMasterKey),
        dropNext: step(dropNextMasterKey),
        forget: step(forgetPreviousMasterKey),
        holders: () => holdersOf(config, transport),
        reseal: (keyId) => resealRows(doorTo(inspector, transport, servedWithinMs, say), keyId),
        recordSealedBy: () => (files?.current === masterKeyPath(config.dataDir) ? recordSealedBy(config.dataDir) : undefined),
        pause,
        nowMs: () => performance.now(),
        tell: say,
      });
    }),
  );
}

const doorTo = (
  inspector: { leader(role: "partition-manager"): Promise<string> },
  transport: Transport,
  patienceMs: number,
  tell: (how: string) => void,
): ResealDoor => ({
  accounts: async () => accountsAt(transport, await inspector.leader("partition-manager")),
  pause,
  nowMs: () => performance.now(),
  patienceMs,
  tell,
});

async function holdersOf(config: ClusterConfig, transport: Transport): Promise<KeyHolder[]> {
  const { processes } = await gather(config, transport, { view: false, nowMs: () => 0 });
  return processes.filter(({ role }) => role === "partition-server").map(holderOf);
}

function holderOf({ name, pid, answer, silence, state }: StampFacts["processes"][number]): KeyHolder {
  const told = answer === undefined ? undefined : masterKeysTold(answer.facts);
  return {
    name,
    state: answer !== undefined ? "answers" : pid === null && state !== "not answering" ? "down" : "silent",
    ids: told?.ids,
    problem: answer === undefined ? silence : (told?.problem ?? ""),
  };
}

/** Returns the files of the master keys: by flag, environment of a container, configuration, or data folder. Throws CommandError. */
function filesFor(command: Command, { dataDir, roles }: ClusterConfig): MasterKeyFiles {
  const { masterKeyFile: flag } = command.opts<{ masterKeyFile?: string }>();
  const settings = roles["partition-server"] ?? {};
  const { STAMP_MASTER_KEY_FILE: fromEnvironment, STAMP_MASTER_KEY_PREVIOUS_FILE: previous } = process.env;
  if (flag !== undefined) return masterKeyFilesOf({ masterKeyFile: flag });
  if (fromEnvironment !== undefined && fromEnvironment !== "")
    return masterKeyFilesOf({ masterKeyFile: fromEnvironment, masterKeyPreviousFile: previous ?? "" });
  const { masterKeyFile: configured, masterKeyPreviousFile: configuredPrevious, masterKeyCommand } = settings;
  if (masterKeyCommand !== undefined && command.name() !== "show")
    throw new CommandError(
      "the master key is printed by masterKeyCommand: change it where it is kept, give the one before as masterKeyPreviousFile, restart the " +
        "partition servers one after the other, and then: stamp keys reseal (docs/guides/keys-at-rest.md)",
    );
  return masterKeyFilesOf({
    masterKeyFile: typeof configured === "string" ? configured : masterKeyPath(dataDir),
    masterKeyPreviousFile: typeof configuredPrevious === "string" ? configuredPrevious : "",
  });
}

function inCommand<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new CommandError(inWords(error));
  }
}

function rotatedText({ id, previous, steps, rows, file }: KeyRotated & { readonly file: string }): string {
  const kept =
    previous === undefined
      ? "no other key is kept. Backups and copies that were made before the rotation open with the key of their time only"
      : `key ${previous} is kept beside it: backups, and copies of the metadata, that were made until now need it.\n` +
        "When none of them is wanted any more: stamp keys rotate-master --forget-previous";
  return [
    `master key ${id} seals everything (steps: ${steps.join(", ") || "none were left"})`,
    `file    ${file}`,
    kept,
    "",
    rowsText(rows, id),
  ].join("\n");
}

const rowsText = (rows: RowsByKey, current: string | undefined): string =>
  table(
    ["MASTER KEY", "SEALS ACCOUNTS"],
    Object.entries(rows).map(([id, accounts]) => [id === "" ? "none: stored openly" : id === current ? `${id} (current)` : id, accounts]),
  );

interface Shown extends Partial<MasterKeyState> {
  readonly file: string;
  readonly rows: RowsByKey;
  readonly partitionServers: readonly KeyHolder[];
}

function showText({ file, current, next, previous, rows, partitionServers }: Shown): string {
  const lines = [
    ["current", current, `seals (${file})`],
    ["next", next, "added, not used yet: go on with ./stamp keys rotate-master"],
    ["previous", previous, "kept: what was copied or backed up before the rotation ended needs it"],
  ].flatMap(([name = "", id, about = ""]) => (id === undefined ? [] : [`${name.padEnd(9)} ${id}  ${about}`]));
  return [
    ...(lines.length === 0 ? [`no master key at ${file}`] : lines),
    "",
    rowsText(rows, current),
    "",
    table(
      ["PARTITION SERVER", "SEALS WITH", "OPENS TOO", "PROBLEM"],
      partitionServers.map(({ name, ids = [], problem, state }) => [
        name,
        ids[0] ?? (state === "answers" ? "none" : "-"),
        ids.slice(1).join(" ") || "-",
        problem || "-",
      ]),
    ),
  ].join("\n");
}
