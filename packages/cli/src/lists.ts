/** `stamp stream list`, `stamp extent list|show`, `stamp partition list`, `stamp node list`. */
import { ownTransport, StampInspector } from "@stamp/cluster";
import { ExtentNode, ReplicaState } from "@stamp/wire";
import type { Command } from "commander";
import { composeStatus } from "./compose-status.ts";
import { CommandError, configOf, runningCluster, withConfig } from "./context.ts";
import { bytesText, table, toJson } from "./print.ts";
import { extentTable, nameIn, nodeTable, rangeTable, streamTable } from "./status.ts";

type Transport = ReturnType<typeof ownTransport>;

/** What `work` finds out about the running stamp. */
export async function inspect<T>(command: Command, work: (inspector: StampInspector, transport: Transport) => Promise<T>): Promise<T> {
  const transport = ownTransport();
  try {
    const status = (await composeStatus(transport)) ?? (await runningCluster(configOf(command)));
    return await work(new StampInspector(transport, status.lockService), transport);
  } catch (error) {
    throw error instanceof CommandError ? error : new CommandError((error as Error).message);
  } finally {
    await transport.close();
  }
}

export const wantsJson = (command: Command): boolean => command.opts<{ json?: boolean }>().json === true;

export function addLists(program: Command): void {
  const make = (parent: Command, name: string, about: string): Command =>
    withConfig(parent.command(name).description(about).option("--json", "for tools"), ["dataDir"]);

  const stream = program.command("stream").description("streams of the stream layer");
  make(stream, "list [prefix]", "all streams with their extents").action(async (prefix: string | undefined, _options, command: Command) => {
    const streams = await inspect(command, (inspector) => inspector.streams(prefix ?? ""));
    console.log(wantsJson(command) ? toJson(streams) : streamTable({ streams }));
  });

  const extent = program.command("extent").description("extents and their replicas");
  make(extent, "list", "all extents and where their replicas are").action(async (_options, command: Command) => {
    const [extents, nodes] = await inspect(command, (inspector) => Promise.all([inspector.extents(), inspector.nodes()]));
    console.log(wantsJson(command) ? toJson(extents) : extentTable({ extents, nodes }));
  });
  make(extent, "show <id>", "one extent, as each of its replicas sees it").action(async (id: string, _options, command: Command) => {
    await inspect(command, (inspector, transport) => showExtent(inspector, transport, id, wantsJson(command)));
  });

  const partition = program.command("partition").description("range partitions");
  make(partition, "list", "all ranges and who serves them").action(async (_options, command: Command) => {
    const ranges = await inspect(command, (inspector) => inspector.ranges());
    console.log(wantsJson(command) ? toJson(ranges) : rangeTable({ ranges }));
  });

  const node = program.command("node").description("extent nodes");
  make(node, "list", "all extent nodes as the stream manager sees them").action(async (_options, command: Command) => {
    const nodes = await inspect(command, (inspector) => inspector.nodes());
    console.log(wantsJson(command) ? toJson(nodes) : nodeTable({ nodes }));
  });
}

async function showExtent(inspector: StampInspector, transport: Transport, id: string, json: boolean): Promise<void> {
  if (!/^\d{1,16}$/.test(id)) throw new CommandError(`${id} is not an extent id`, 2);
  const extents = await inspector.extents();
  const info = extents.find((each) => String(each.location?.extentId) === id);
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
  if (json) {
    console.log(toJson({ ...info, replicas }));
    return;
  }
  console.log(extentTable({ extents: [info], nodes: [] }));
  console.log();
  console.log(
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
