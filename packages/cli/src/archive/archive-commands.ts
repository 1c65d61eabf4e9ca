/** `stamp export` and `stamp import`: an account as an archive of files, and back; or straight from an emulator that runs (docs/guides/export-import.md). */
import { join } from "node:path";
import type { Command } from "commander";
import { CommandError, exitCodes, withConfig } from "../context.ts";
import { toJson, word } from "../print.ts";
import { say, sayRaw, warn } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { accountName, kindOf } from "../values.ts";
import type { Outcome } from "./run.ts";

const secretText = kindOf("AccountName=acme;AccountKey=QQ==", (text) => (text.trim() === "" ? "a connection string" : undefined), {
  isSecret: true,
});

interface SourceFlags {
  readonly history: boolean;
  readonly messages?: boolean;
}

const withSource = (command: Command): Command =>
  command
    .option("--no-history", "without snapshots and older versions of blobs")
    .option("--messages", "with the messages of queues, which are hidden from others while they are read");

const withDoor = (command: Command, what: string): Command =>
  withConfig(
    command.option("--connection-string <text>", `${what}; @FILE reads it from a file`, secretText).option("--json", "for tools"),
    ["dataDir"],
  );

export function addExport(program: Command): void {
  const command = topLevel(program, "export")
    .argument("<account>", "account of the stamp that runs, or of the connection string", accountName)
    .argument("<folder>", "new folder for the archive, or one with an export that was left");
  withDoor(withSource(command), "where the account is, if not at the stamp that runs: any server of the API").action(
    async (account: string, folder: string, options: SourceFlags & DoorFlags, command: Command) => {
      const { placeOf } = await import("./place.ts");
      const { runExport } = await import("./run.ts");
      const place = await placeOf(command, account, options.connectionString);
      const outcome = await runExport(place, folder, { history: options.history, messages: options.messages === true });
      await told(options, outcome, `${account} is in ${word(folder)}`, "verify it: ./stamp import archive FOLDER --dry-run");
    },
  );
}

interface DoorFlags {
  readonly connectionString?: string;
  readonly json?: boolean;
}

interface ImportFlags extends DoorFlags {
  readonly merge?: boolean;
  readonly state?: string;
  readonly list?: boolean;
  readonly dryRun?: boolean;
}

export function addImport(program: Command): void {
  const command = topLevel(program, "import");
  addArchive(command);
  addEmulator(command);
}

const withMerge = (command: Command, beside: string): Command =>
  command
    .option("--merge", "into an account that is not empty; blobs and entities of the same names are replaced")
    .option("--state <file>", `where a later run finds how far this one came; default: import-….json in ${beside}`);

function addArchive(parent: Command): void {
  const command = parent
    .command("archive")
    .description("an archive of stamp export, into an account")
    .argument("<folder>", "the archive")
    .argument("[account]", "account of the stamp that runs, or of the connection string; default: the archive's", accountName)
    .option("--list", "print what the archive has, by its containers, tables and queues; asks no stamp")
    .option("--dry-run", "read and verify every byte of the archive; asks no stamp");
  withDoor(withMerge(command, "the archive"), "where the account is, if not at the stamp that runs: any server of the API").action(
    async (folder: string, account: string | undefined, options: ImportFlags, command: Command) => {
      const run = await import("./run.ts");
      const source = await run.archiveSource(folder);
      const { manifest } = source.reader;
      if (options.list === true || options.dryRun === true) {
        const { listed } = await import("./list.ts");
        if (options.dryRun === true) await told(options, { counts: await run.runVerify(source), leftOut: [] }, `${word(folder)} is whole`);
        else await listed(source, options.json === true);
        return;
      }
      const { placeOf } = await import("./place.ts");
      const target = await placeOf(command, account ?? manifest.account, options.connectionString);
      const statePath = options.state ?? join(folder, run.stateName(target));
      const outcome = await run.runImport(source, target, { merge: options.merge === true, statePath });
      await told(options, outcome, `${word(folder)} is in account ${target.account}`);
    },
  );
}

function addEmulator(parent: Command): void {
  const command = parent
    .command("azurite")
    .description("straight from an emulator that runs: starts nothing of it, and reads over its API")
    .argument(
      "<source>",
      "URL of its Blob service (the next two ports are queue and table), or a connection string or @FILE with one",
      secretText,
    )
    .argument("[account]", "account of the stamp that runs, or of the connection string; default: the emulator's", accountName)
    .addHelpText("after", "\nExample: stamp import azurite http://127.0.0.1:20000 acme");
  withDoor(withSource(withMerge(command, "this folder")), "where the account is, if not at the stamp that runs").action(
    async (from: string, account: string | undefined, options: ImportFlags & SourceFlags, command: Command) => {
      const { checkListens, emulatorAt, placeIn, placeOf } = await import("./place.ts");
      const run = await import("./run.ts");
      const place = from.startsWith("@") || from.includes("=") ? placeIn(from) : emulatorAt(from);
      const target = await placeOf(command, account ?? place.account, options.connectionString);
      if (target.urls.blob === place.urls.blob)
        throw new CommandError(
          `${place.urls.blob} is this stamp itself: start the emulator at other ports, or the stamp with --port-base`,
          exitCodes.usage,
        );
      await checkListens(place);
      const source = run.accountSource(place, { history: options.history, messages: options.messages === true });
      const outcome = await run.runImport(source, target, {
        merge: options.merge === true,
        statePath: options.state ?? run.stateName(target),
      });
      await told(options, outcome, `account ${place.account} of the emulator is in account ${target.account}`);
    },
  );
}

async function told({ json }: DoorFlags, { counts, leftOut }: Outcome, what: string, next = ""): Promise<void> {
  const { countsText } = await import("./items.ts");
  if (json === true) sayRaw(toJson({ counts, leftOut }));
  else say(`${what}: ${countsText(counts)}${next === "" ? "" : `\n${next}`}`);
  for (const each of leftOut) warn(`left out: ${each}`);
  if (counts.leftOut === 0) return;
  const more = counts.leftOut - leftOut.length;
  if (more > 0) warn(`and ${more} more, which were told before`);
  process.exitCode = exitCodes.failed;
}
