/** `stamp status`: every process, streams, extents, replicas and ranges, and where they are. */
import { type ClusterStatus, ownTransport, StampInspector, type StampView } from "@stamp/cluster";
import { ExtentState, NodeDuty } from "@stamp/wire";
import type { Command } from "commander";
import { composeStatus } from "./compose-status.ts";
import { configOf, exitCodes, runningCluster, withConfig } from "./context.ts";
import { bytesText, endpointLines, processTable, table, toJson } from "./print.ts";

export function addStatus(program: Command): void {
  const command = program.command("status").description("what runs, and where everything is").option("--json", "for tools");
  withConfig(command, ["dataDir"]).action(async (_options, command: Command) => {
    const transport = ownTransport();
    const status = (await composeStatus(transport)) ?? (await runningCluster(configOf(command)));
    const view = await new StampInspector(transport, status.lockService).view();
    await transport.close();
    if (command.opts<{ json?: boolean }>().json === true) console.log(toJson({ ...status, ...view }));
    else console.log(statusText(status, view));
    process.exitCode = status.ready ? 0 : exitCodes.notReady;
  });
}

/** The name of an enum's value, in lower case. */
export const nameIn = (names: Readonly<Record<string, number>>, value: number): string =>
  Object.keys(names)
    .find((each) => names[each] === value)
    ?.toLowerCase() ?? String(value);

export function extentTable(view: Pick<StampView, "extents" | "nodes">): string {
  return table(
    ["EXTENT", "STREAM", "STATE", "LENGTH", "COPIES", "REPLICAS (primary first)"],
    view.extents.map((extent) => [
      extent.location?.extentId ?? 0,
      extent.stream,
      nameIn(ExtentState, extent.state),
      extent.location?.sealedLengthBytes === undefined ? "open" : bytesText(extent.location.sealedLengthBytes),
      extent.state === ExtentState.SEALED ? `${extent.intactCopies} of ${extent.nodeIds.length}` : extent.nodeIds.length,
      extent.nodeIds.join(" "),
    ]),
  );
}

export function streamTable(view: Pick<StampView, "streams">): string {
  return table(
    ["STREAM", "OWNER EPOCH", "COUNT", "EXTENTS"],
    view.streams.map((stream) => {
      const ids = stream.extents.map((extent) => String(extent.extentId));
      // Of a long list the stream manager tells the first and the last ones.
      const half = ids.length / 2;
      const shown = stream.more ? [...ids.slice(0, half), "…", ...ids.slice(half)] : ids;
      return [stream.name, stream.ownerEpoch, stream.extentCount, shown.join(" ")];
    }),
  );
}

const keyText = (key: Uint8Array, empty: string): string =>
  key.length === 0
    ? empty
    : Buffer.from(key)
        .toString("latin1")
        .replaceAll(/[^\x20-\x7e]/g, "·");

export function rangeTable(view: Pick<StampView, "ranges">): string {
  return table(
    ["RANGE", "TABLE", "FROM", "TO", "VERSION", "OWNER EPOCH", "SERVER", "STATE"],
    view.ranges.map((range) => [
      range.rangeId,
      range.table,
      keyText(range.lowKey, "start"),
      keyText(range.highKey, "end"),
      range.rangeVersion,
      range.ownerEpoch,
      range.server === "" ? "-" : range.server,
      range.change !== "" ? range.change : range.server === "" ? "unassigned" : range.loaded ? "served" : "loading",
    ]),
  );
}

export function nodeTable(view: Pick<StampView, "nodes">): string {
  return table(
    ["NODE", "ADDRESS", "DOMAIN", "STATE", "REPLICAS", "EXTENTS", "FREE"],
    view.nodes.map((node) => [
      node.nodeId,
      node.address,
      node.faultDomain === "" ? "-" : node.faultDomain,
      `${node.up ? "up" : `away for ${(Number(node.lastSeenMsAgo) / 1000).toFixed(1)} s`}${node.duty === NodeDuty.SERVING ? "" : `, ${nameIn(NodeDuty, node.duty)}`}`,
      node.replicas,
      node.extentCount,
      `${bytesText(node.freeBytes)} of ${bytesText(node.totalBytes)}`,
    ]),
  );
}

function statusText(status: ClusterStatus, view: StampView): string {
  const parts = [
    processTable(status),
    `\nEndpoints\n${endpointLines(status)}\n\nConnection string\n  ${status.connectionString}\n\ndata:  ${status.dataDir}`,
    `\nExtent nodes\n${nodeTable(view)}`,
    `\nRange partitions\n${rangeTable(view)}`,
    `\nStreams\n${streamTable(view)}`,
    `\nExtents\n${extentTable({ ...view, extents: view.extents.slice(0, 200) })}`,
  ];
  if (view.extents.length > 200) parts.push(`… ${view.extents.length - 200} more: ./stamp extent list`);
  for (const problem of view.problems) parts.push(`can't be asked now: ${problem}`);
  if (!status.ready) parts.push("\nnot everything is ready");
  return parts.join("\n");
}
