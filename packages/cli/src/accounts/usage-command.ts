/** `stamp account usage`: what the containers of an account hold. */
import type { Command } from "commander";
import { dataClients } from "../console/data/clients.ts";
import { bytesText, table } from "../print.ts";
import { inspect, make, tell } from "../running.ts";
import { type ContainerUsage, usageOf } from "./usage.ts";

export function addUsage(account: Command): void {
  make(account, "usage <account>", "blobs and bytes of its containers, counted now")
    .argument("[container]", "only of this one")
    .action((name: string, only: string | undefined, _options, command: Command) => counted(command, name, only));
}

async function counted(command: Command, account: string, only: string | undefined): Promise<void> {
  const containers: ContainerUsage[] = [];
  await inspect(command, async (inspector, transport, _lockService, { endpoints }) => {
    const manager = (): Promise<string> => inspector.leader("partition-manager");
    const clients = dataClients(() => ({ transport, manager, endpoints }));
    for await (const each of usageOf(clients, account, only, new AbortController().signal)) containers.push(each);
  });
  tell(command, { account, containers }, () => usageText(containers));
}

export function usageText(containers: readonly ContainerUsage[]): string {
  const all = containers.reduce(
    (sum, { blobs, bytes, kept, keptBytes }) => ({
      blobs: sum.blobs + blobs,
      bytes: sum.bytes + bytes,
      kept: sum.kept + kept,
      keptBytes: sum.keptBytes + keptBytes,
    }),
    { blobs: 0, bytes: 0, kept: 0, keptBytes: 0 },
  );
  const row = (name: string, { blobs, bytes, kept, keptBytes }: typeof all): string[] => [
    name,
    `${blobs}`,
    bytesText(bytes),
    `${kept}`,
    bytesText(keptBytes),
  ];
  return table(
    ["CONTAINER", "BLOBS", "BYTES", "VERSIONS, SNAPSHOTS, DELETED", "BYTES"],
    [...containers.map((each) => row(each.container, each)), row("all", all)],
  );
}
