/** Shared by the commands that ask the running stamp. */
import { type ClusterStatus, composeCluster, ownTransport, StampInspector } from "@stamp/cluster";
import { inWords } from "@stamp/ports-node";
import { NodeDuty, type NodeInfo } from "@stamp/wire";
import type { Command } from "commander";
import { CommandError, configOf, runningCluster, withConfig } from "./context.ts";
import { toJson } from "./print.ts";
import { say, sayRaw } from "./say.ts";

export type Transport = ReturnType<typeof ownTransport>;

/** Where the running stamp's processes and services are. */
type RunningStamp = Pick<ClusterStatus, "processes" | "endpoints">;

/** Returns what `work` finds out about the running stamp. */
export async function inspect<T>(
  command: Command,
  work: (inspector: StampInspector, transport: Transport, lockService: string, stamp: RunningStamp) => Promise<T>,
): Promise<T> {
  const config = configOf(command);
  const transport = ownTransport(config);
  try {
    const status = composeCluster() ?? (await runningCluster(config));
    return await work(new StampInspector(transport, status.lockService), transport, status.lockService, status);
  } catch (error) {
    throw error instanceof CommandError ? error : new CommandError(inWords(error));
  } finally {
    await transport.close();
  }
}

/**
 * Returns the extent nodes that can be asked. A decommissioned one has stopped, and another process may have its
 * address by now.
 */
export const nodesToAsk = async (inspector: StampInspector): Promise<NodeInfo[]> =>
  (await inspector.nodes()).filter(({ duty }) => duty !== NodeDuty.DECOMMISSIONED);

export const wantsJson = (command: Command): boolean => command.opts<{ json?: boolean }>().json === true;

/** Makes a command on the running stamp, with `--json`. */
export const make = (parent: Command, name: string, about: string): Command =>
  withConfig(parent.command(name).description(about).option("--json", "for tools"), ["dataDir"]);

/** Prints what was found: as JSON for tools, else as text. */
export function tell<T>(command: Command, found: T, text: (found: T) => string): void {
  if (wantsJson(command)) sayRaw(toJson(found));
  else say(text(found));
}
