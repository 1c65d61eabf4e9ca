/** `stamp extent list|show|seal|adopt|quarantine`. */
import type { ListedPart, StampInspector } from "@stamp/cluster";
import { ExtentFragments, type ExtentInfo, ExtentNode, ReplicaState } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, exitCodes } from "../context.ts";
import { bytesText, table, toJson } from "../print.ts";
import { withProgress } from "../progress.ts";
import { inspect, make, type Transport, tell, wantsJson } from "../running.ts";
import { say, sayRaw, warn } from "../say.ts";
import { extentTable, nameIn } from "../status/status.ts";
import { topLevel } from "../top-level.ts";
import { whole } from "../values.ts";

const sealTimeoutMs = 30_000;
/** Timeout for reading a replica of a gibibyte on a busy disk, in milliseconds. */
const adoptTimeoutMs = 300_000;

export function addExtent(program: Command): void {
  const extent = topLevel(program, "extent");
  make(extent, "list", "extents in the order of their ids, and where their replicas are")
    .option("--after <id>", "those with a higher id", whole(0, Number.MAX_SAFE_INTEGER), "0")
    .option("--limit <number>", "at most so many", whole(1, 999_999_999), "1000")
    .action(async (_options, command: Command) => {
      const { after, limit } = command.opts<{ after: string; limit: string }>();
      const { items, more } = await inspect(command, (inspector) => firstExtents(inspector, BigInt(after), Number(limit)));
      tell(command, items, () => extentTable({ extents: items }));
      if (more) warn(`… and more: --after ${items.at(-1)?.location?.extentId}`);
    });
  make(extent, "show <id>", "one extent, as each of its replicas sees it").action(async (id: string, _options, command: Command) => {
    await inspect(command, (inspector, transport) => showExtent(inspector, transport, id, wantsJson(command)));
  });
  make(extent, "seal <id>", "seal an extent of which no intact replica is left, at what is left; that is recorded for ever")
    .option("--accept-loss", "acknowledged data may be lost by it")
    .option("--note <text>", "who accepts it, and why")
    .action(async (id: string, _options, command: Command) => {
      const { acceptLoss, note } = command.opts<{ acceptLoss?: boolean; note?: string }>();
      const extentId = BigInt(id);
      if (acceptLoss !== true || note === undefined) {
        throw new CommandError(
          "an extent is sealed by itself as soon as an intact replica answers; when none ever will: --accept-loss --note WHO-AND-WHY",
          exitCodes.usage,
        );
      }
      const sealed = await inspect(command, (inspector) =>
        inspector.change((manager, timeoutMs) => manager.sealAcceptingLoss({ extentId, note }, { timeoutMs }), sealTimeoutMs),
      );
      tell(command, sealed, () => extentTable({ extents: [sealed] }));
    });
  make(
    extent,
    "adopt <node> <extent>",
    "take a replica out of quarantine into its extent, if the metadata prove that it belongs there",
  ).action(async (nodeId: string, id: string, _options, command: Command) => {
    const request = { nodeId, extentId: BigInt(id) };
    const about = {
      what: `${nodeId} reads the replica of extent ${id}`,
      afterwards: `The replica is read to its end and then adopted or left where it is. See which: ./stamp extent show ${id}`,
    };
    const adopted = await withProgress(about, () =>
      inspect(command, (inspector) =>
        inspector.change((manager, timeoutMs) => manager.adoptQuarantined(request, { timeoutMs }), adoptTimeoutMs),
      ),
    );
    tell(
      command,
      adopted,
      () => `the replica of extent ${id} on ${nodeId} is intact and was adopted\n${extentTable({ extents: [adopted] })}`,
    );
  });
  addQuarantine(extent);
}

async function firstExtents(inspector: StampInspector, after: bigint, count: number): Promise<ListedPart<ExtentInfo>> {
  const items: ExtentInfo[] = [];
  for (;;) {
    const page = await inspector.extentPage(items.at(-1)?.location?.extentId ?? after, Math.min(count - items.length, 1_000));
    items.push(...page.items);
    if (!page.more || items.length >= count) return { items, more: page.more };
  }
}

function addQuarantine(extent: Command): void {
  const quarantine = extent
    .command("quarantine")
    .description("replicas on nodes that no record explains; nothing deletes them or takes them back (extent adopt) but you");
  make(quarantine, "list", "what is in quarantine, and why").action(async (_options, command: Command) => {
    const found = await inspect(command, (inspector) => inspector.ask((manager, timeoutMs) => manager.listQuarantine({}, { timeoutMs })));
    tell(command, found, ({ replicas, more }) => {
      if (replicas.length === 0) return "nothing is in quarantine";
      const rows = replicas.map((each) => [each.nodeId, each.extentId, bytesText(each.durableBytes), each.version, each.why]);
      return `${table(["NODE", "EXTENT", "LENGTH", "VERSION", "WHY"], rows)}${more ? "\n… and more than are remembered" : ""}`;
    });
  });
  make(quarantine, "delete <node> <extent>", "delete one replica for good")
    .option("--yes", "do it")
    .action(async (nodeId: string, id: string, _options, command: Command) => {
      if (command.opts<{ yes?: boolean }>().yes !== true) {
        throw new CommandError(`this deletes the replica of extent ${id} on ${nodeId} for good; say --yes`, exitCodes.usage);
      }
      const request = { nodeId, extentId: BigInt(id) };
      await inspect(command, (inspector) => inspector.change((manager, timeoutMs) => manager.deleteQuarantined(request, { timeoutMs })));
      tell(command, { deleted: true }, () => `deleted extent ${id} on ${nodeId}`);
    });
}

async function showExtent(inspector: StampInspector, transport: Transport, id: string, json: boolean): Promise<void> {
  const info = await inspector.extent(BigInt(id));
  if (info === undefined) throw new CommandError(`the stream manager knows no extent ${id}`);
  const replicas = await Promise.all(
    (info.location?.addresses ?? []).map(async (address, at) => {
      const client = transport.client(address, ExtentNode);
      const answer = await client.getExtentReplica({ extentId: BigInt(id) }, { timeoutMs: 2_000 });
      return {
        node: info.nodeIds[at] ?? address,
        address,
        replica: answer.ok ? answer.value : undefined,
        problem: answer.ok ? "" : answer.failure.message,
      };
    }),
  );
  const fragments = await fragmentsOf(info, transport);
  if (json) {
    sayRaw(toJson({ ...info, replicas, fragments }));
    return;
  }
  say(extentTable({ extents: [info] }));
  const { checksum, loss, references } = info;
  say(`in ${references} lists${checksum === undefined ? "" : `, crc32c ${checksum.toString(16).padStart(8, "0")}`}`);
  if (loss !== undefined) {
    const at = new Date(Number(loss.wallMs)).toISOString();
    say(`sealed at ${at} although ${loss.knownCommittedBytes} bytes were known to be acknowledged: ${loss.note}`);
  }
  if (info.newerFragments > 0)
    say(
      `it can't be read as recorded, and nodes hold ${info.newerFragments} fragments that are newer than the record: ./stamp coding adopt ${id}`,
    );
  say();
  if (info.coded !== undefined) {
    const rows = fragments.map(({ index, node, address, version, state }) => [index, node, address, version, state]);
    say(table(["FRAGMENT", "NODE", "ADDRESS", "VERSION", "STATE"], rows));
    return;
  }
  say(
    table(
      ["REPLICA", "ADDRESS", "STATE", "VERSION", "OWNER EPOCH", "DURABLE", "COMMITTED"],
      replicas.map((each) => {
        if (each.replica === undefined) return [each.node, each.address, each.problem, "", "", "", ""];
        const { state, version, ownerEpoch, durableBytes, committedBytes } = each.replica;
        return [
          each.node,
          each.address,
          nameIn(ReplicaState, state),
          version,
          ownerEpoch,
          bytesText(durableBytes),
          bytesText(committedBytes),
        ];
      }),
    ),
  );
}

interface ShownFragment {
  readonly index: number;
  readonly node: string;
  readonly address: string;
  readonly version: bigint;
  /** intact, missing, what is damaged, or why the node does not answer. */
  readonly state: string;
}

/** Asks each node for the fragment that the record places there; empty: the extent is not coded. */
async function fragmentsOf({ location, coded, fragmentNodeIds }: ExtentInfo, transport: Transport): Promise<ShownFragment[]> {
  const extentId = location?.extentId ?? 0n;
  return Promise.all(
    (coded?.fragments ?? []).map(async ({ address, version }, index) => {
      const request = { afterExtentId: extentId - 1n, limit: 1 };
      const answer = await transport.client(address, ExtentFragments).listFragments(request, { timeoutMs: 2_000 });
      const held = answer.ok ? answer.value.fragments.find((each) => each.extentId === extentId && each.version === version) : undefined;
      const state = answer.ok ? (held === undefined ? "missing" : held.damage || "intact") : answer.failure.message;
      return { index, node: fragmentNodeIds[index] ?? address, address, version, state };
    }),
  );
}
