/** `stamp stream …`: streams of the stream layer, for people. Changes are under an owner epoch, by default the recorded one. */
import { readFileSync } from "node:fs";
import { fromJson } from "@bufbuild/protobuf";
import type { StampInspector } from "@stamp/cluster";
import { inWords } from "@stamp/ports-node";
import { MultiModifyRequestSchema, type StreamStat } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, exitCodes } from "../context.ts";
import { bytesText, table } from "../print.ts";
import { inspect, make, tell } from "../running.ts";
import { streamTable } from "../status/status.ts";
import { topLevel } from "../top-level.ts";
import { whole } from "../values.ts";

const sealTimeoutMs = 30_000;
const ownerEpoch = whole(0, 999_999_999_999_999);

export function addStream(program: Command): void {
  const stream = topLevel(program, "stream");
  make(stream, "list [prefix]", "all streams with their extents").action(async (prefix: string | undefined, _options, command: Command) => {
    const streams = await inspect(command, (inspector) => inspector.streams(prefix ?? ""));
    tell(command, streams, () => streamTable({ streams }));
  });
  make(stream, "stat <name>", "owner epoch, version and size of one stream").action(async (name: string, _options, command: Command) => {
    tell(command, await inspect(command, (inspector) => inspector.streamStat(name)), statText);
  });
  make(stream, "show <name>", "every extent of one stream, in order").action(async (name: string, _options, command: Command) => {
    const extents = await inspect(command, (inspector) => inspector.streamExtents(name));
    tell(command, extents, (all) =>
      table(
        ["EXTENT", "VERSION", "LENGTH", "REPLICAS"],
        all.map((each) => [
          each.extentId,
          each.version,
          each.sealedLengthBytes === undefined ? "open" : bytesText(each.sealedLengthBytes),
          each.addresses.join(" "),
        ]),
      ),
    );
  });
  addChanges(stream);
}

function addChanges(stream: Command): void {
  const withEpoch = (command: Command): Command =>
    command.option("--owner-epoch <number>", "owner epoch of the call; default: the one that is recorded", ownerEpoch);
  make(stream, "create <name>", "a new stream without extents")
    .option("--owner-epoch <number>", "owner epoch of its first owner", ownerEpoch, "1")
    .action(async (name: string, _options, command: Command) => {
      const ownerEpoch = epochOption(command) ?? 1n;
      await change(command, name, (inspector) =>
        inspector.change((manager, timeoutMs) => manager.createStream({ name, ownerEpoch }, { timeoutMs })),
      );
    });
  withEpoch(make(stream, "open <name>", "take a stream over: seals its last extent; a lower owner epoch is fenced for ever")).action(
    async (name: string, _options, command: Command) => {
      await change(command, name, async (inspector) => {
        const ownerEpoch = await epochOf(inspector, command, name);
        return inspector.change((manager, timeoutMs) => manager.openStream({ name, ownerEpoch }, { timeoutMs }), sealTimeoutMs);
      });
    },
  );
  withEpoch(make(stream, "rename <name> <new-name>", "the owner goes on under the new name")).action(
    async (name: string, newName: string, _options, command: Command) => {
      await change(command, newName, async (inspector) => {
        const ownerEpoch = await epochOf(inspector, command, name);
        return inspector.change((manager, timeoutMs) => manager.renameStream({ name, ownerEpoch, newName }, { timeoutMs }));
      });
    },
  );
  withEpoch(make(stream, "truncate <name>", "drop extents from the front"))
    .requiredOption("--before <extent>", "the first extent that stays")
    .action(async (name: string, _options, command: Command) => {
      const beforeExtentId = BigInt(command.opts<{ before: string }>().before);
      await change(command, name, async (inspector) => {
        const ownerEpoch = await epochOf(inspector, command, name);
        return inspector.change((manager, timeoutMs) => manager.truncateStream({ name, ownerEpoch, beforeExtentId }, { timeoutMs }));
      });
    });
  make(stream, "concatenate <target> <source>", "append the list of one stream to another, which takes its place").action(
    async (target: string, source: string, _options, command: Command) => {
      await change(command, target, async (inspector) => {
        const [targetOwnerEpoch, sourceOwnerEpoch] = [
          (await inspector.streamStat(target)).ownerEpoch,
          (await inspector.streamStat(source)).ownerEpoch,
        ];
        const request = { target, targetOwnerEpoch, source, sourceOwnerEpoch };
        return inspector.change((manager, timeoutMs) => manager.concatenateStreams(request, { timeoutMs }), sealTimeoutMs);
      });
    },
  );
  withEpoch(make(stream, "delete <name>", "the stream and every extent that no other stream holds"))
    .option("--yes", "do it")
    .action(async (name: string, _options, command: Command) => {
      if (command.opts<{ yes?: boolean }>().yes !== true) {
        throw new CommandError(`this deletes stream ${name} and, after the grace period, its data; say --yes`, exitCodes.usage);
      }
      await inspect(command, async (inspector) => {
        const ownerEpoch = await epochOf(inspector, command, name);
        return inspector.change((manager, timeoutMs) => manager.deleteStream({ name, ownerEpoch }, { timeoutMs }));
      });
      tell(command, { deleted: name }, () => `deleted ${name}`);
    });
  make(stream, "modify <file>", "one atomic change of several streams: a MultiModifyRequest as JSON (- for standard input)").action(
    async (file: string, _options, command: Command) => {
      const request = parseEdits(file);
      const made = await inspect(command, (inspector) =>
        inspector.change((manager, timeoutMs) => manager.multiModify(request, { timeoutMs })),
      );
      tell(command, made.streams, (streams) => streams.map(statText).join("\n"));
    },
  );
}

function parseEdits(file: string) {
  try {
    return fromJson(MultiModifyRequestSchema, JSON.parse(readFileSync(file === "-" ? 0 : file, "utf8")));
  } catch (error) {
    throw new CommandError(inWords(error, file), exitCodes.usage);
  }
}

/** Makes a change and shows the stream afterwards. */
async function change(command: Command, name: string, work: (inspector: StampInspector) => Promise<unknown>): Promise<void> {
  const stat = await inspect(command, async (inspector) => {
    await work(inspector);
    return inspector.streamStat(name);
  });
  tell(command, stat, statText);
}

function epochOption(command: Command): bigint | undefined {
  const text = command.opts<{ ownerEpoch?: string }>().ownerEpoch;
  if (text === undefined) return undefined;
  return BigInt(text);
}

const epochOf = async (inspector: StampInspector, command: Command, name: string): Promise<bigint> =>
  epochOption(command) ?? (await inspector.streamStat(name)).ownerEpoch;

function statText(stat: StreamStat): string {
  const ends = stat.extentCount === 0n ? "" : `, ${stat.firstExtentId} to ${stat.lastExtentId}${stat.open ? " (open)" : ""}`;
  return `${stat.name}  owner epoch ${stat.ownerEpoch}, list version ${stat.listVersion}, ${stat.extentCount} extents${ends}, ${bytesText(stat.sealedBytes)} sealed`;
}
