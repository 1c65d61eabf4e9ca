/** `stamp debug bundle`: one file for whoever helps. */
import { openSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { type ClusterConfig, DamagedRecordError } from "@stamp/cluster";
import { inWords } from "@stamp/ports-node";
import type { Command } from "commander";
import { packTar } from "modern-tar";
import { CommandError, configOf, exitCodes, withConfig } from "../context.ts";
import { bytesText, word } from "../print.ts";
import { say, warn } from "../say.ts";
import { topLevel } from "../top-level.ts";
import { whole } from "../values.ts";
import { type BundleFile, bundleFiles } from "./bundle.ts";

const mebibyte = 1024 * 1024;

export function addDebug(program: Command): void {
  const bundle = topLevel(program, "debug")
    .command("bundle")
    .description("one file with logs, facts and configuration, without secrets; also of a stamp that is down")
    .argument("[file]", "the archive; default: stamp-debug-TIME.tar.gz in this folder")
    .option("--log-mib <number>", "mebibytes of logs, before they are compressed; the end of each", whole(1, 1_000), "32");
  withConfig(bundle, ["dataDir"]).action(async (file: string | undefined, _options, command: Command) => {
    const now = new Date();
    const path = resolve(file ?? `stamp-debug-${now.toISOString().slice(0, 19).replaceAll(/[:T]/g, "-")}.tar.gz`);
    const files = await bundleFiles(configAnyway(command), process.env, Number(command.opts<{ logMib: string }>().logMib) * mebibyte);
    const bytes = await archived(files, now);
    try {
      // For its owner only, and never in the place of another file.
      writeFileSync(openSync(path, "wx", 0o600), bytes);
    } catch (error) {
      throw new CommandError(inWords(error, path), exitCodes.failed);
    }
    say(
      `${path}  ${bytesText(bytes.length)}, ${files.length} files; secrets are removed, names are not. Look through it: tar -tzf ${word(path)}`,
    );
  });
}

/** Returns the configuration, also without a readable record: that is a reason for a bundle. */
function configAnyway(command: Command): ClusterConfig {
  try {
    return configOf(command);
  } catch (error) {
    if (!(error instanceof DamagedRecordError)) throw error;
    warn(`stamp: ${error.message}; the bundle is made without it`);
    return configOf(command, { withoutRecord: true });
  }
}

async function archived(files: readonly BundleFile[], mtime: Date): Promise<Uint8Array> {
  const entries = files.map(({ name, text }) => {
    const body = Buffer.from(text);
    return { header: { name: `stamp-debug/${name}`, size: body.length, mode: 0o600, mtime, type: "file" as const }, body };
  });
  return gzipSync(await packTar(entries));
}
