/** `stamp scrub status`: how far each extent node is with reading everything again, and what it found. */
import { Status } from "@stamp/wire";
import type { Command } from "commander";
import { withConfig } from "../context.ts";
import { bytesText, table } from "../print.ts";
import { inspect, nodesToAsk, tell } from "../running.ts";
import { topLevel } from "../top-level.ts";

export interface ScrubFacts {
  readonly enabled?: boolean;
  readonly running?: boolean;
  readonly pass?: number;
  readonly extents?: number;
  readonly bytes?: number;
  readonly findings?: number;
  readonly extentsLeft?: number;
  readonly finished?: {
    readonly number: number;
    readonly extents: number;
    readonly bytes: number;
    readonly findings: number;
    readonly endedAtMs: number;
  };
  readonly recent?: readonly { readonly extentId: number; readonly atMs: number; readonly why: string }[];
}

interface NodeScrub {
  readonly node: string;
  readonly scrub: ScrubFacts | undefined;
  readonly problem: string;
}

export function addScrub(program: Command): void {
  const scrub = topLevel(program, "scrub");
  withConfig(scrub.command("status").description("last runs and findings of every extent node").option("--json", "for tools"), [
    "dataDir",
  ]).action(async (_options, command: Command) => {
    const nodes = await inspect(command, async (inspector, transport) =>
      Promise.all(
        (await nodesToAsk(inspector)).map(async ({ nodeId, address }): Promise<NodeScrub> => {
          const answer = await transport.client(address, Status).getStatus({}, { timeoutMs: 2_000 });
          if (!answer.ok) return { node: nodeId, scrub: undefined, problem: answer.failure.message };
          return { node: nodeId, scrub: answer.value.facts?.scrub as ScrubFacts | undefined, problem: "" };
        }),
      ),
    );
    tell(command, nodes, scrubText);
  });
}

/** Says what scrubbing does now. */
export const passText = ({ enabled, running, pass, extents, bytes, extentsLeft }: ScrubFacts): string =>
  !enabled
    ? "switched off"
    : running
      ? `pass ${pass}: ${extents} extents, ${bytesText(bytes ?? 0)} read, ${extentsLeft} to go`
      : "waits for the next pass";

export const lastPassText = ({ finished }: ScrubFacts): string =>
  finished === undefined ? "none ended yet" : `${when(finished.endedAtMs)}: ${finished.extents} extents, ${bytesText(finished.bytes)}`;

const when = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");

export function scrubText(nodes: readonly NodeScrub[]): string {
  const rows = nodes.map(({ node, scrub, problem }) => {
    if (scrub === undefined) return [node, problem, "", "", ""];
    const last = lastPassText(scrub);
    return [node, passText(scrub), last, scrub.finished?.findings ?? "", scrub.recent?.length ?? 0];
  });
  const lines = [table(["NODE", "NOW", "LAST PASS", "BAD", "FINDINGS KEPT"], rows)];
  for (const { node, scrub } of nodes) {
    for (const { extentId, atMs, why } of scrub?.recent ?? []) lines.push(`${when(atMs)}  ${node}  extent ${extentId}  ${why}`);
  }
  return lines.join("\n");
}
