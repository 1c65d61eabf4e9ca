/** Where a command reaches the stamp, or the location service, that it asks: what the commands that it prints have to say. */
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ClusterConfig, type ClusterStatus, composeCluster, homeFolder, inContainers, isPackage, readTopology } from "@stamp/cluster";
import type { Command } from "commander";
import { configOf, root } from "../context.ts";
import { word } from "../print.ts";
import type { CommandPlace } from "./facts.ts";
import { commandsAt, kubectl, ourName } from "./help-text.ts";

/** Returns where a stamp is that this command asks. */
export function placeOf(config: ClusterConfig, { dataDir, processes }: Pick<ClusterStatus, "dataDir" | "processes">): CommandPlace {
  const { env } = process;
  const compose = env.STAMP_COMPOSE ?? (env.KUBERNETES_SERVICE_HOST === undefined ? "docker compose" : kubectl);
  // A command in a pod has the pod's name, but not what its first process exported.
  const container = env.STAMP_NAME ?? (compose === kubectl ? env.POD_NAME : undefined) ?? "front-end-1";
  const hosts = config.topology === undefined ? {} : readTopology(config.topology).hosts;
  const hostDirs = Object.fromEntries(Object.entries(hosts).map(([name, host]) => [name, host.dataDir ?? ".stamp"]));
  const services = Object.fromEntries(
    dataDir === inContainers ? processes.map(({ name, grpc }) => [name, grpc.slice(0, grpc.lastIndexOf(":"))]) : [],
  );
  return { dataDir, host: config.host, hostDirs, compose, container, services, location: locationAbove(dataDir) };
}

/** Options that reach the location service of a stamp that `stamp up --stamps` made; empty for another one, whose location it does not know. */
const locationAbove = (dataDir: string): string => {
  const folders = [dataDir, dirname(dataDir)];
  const found = dataDir === inContainers ? undefined : folders.find((folder) => existsSync(join(folder, "stamps.json")));
  return found === undefined ? "" : ` --data ${word(found)}`;
};

interface Asked {
  readonly data?: string;
  readonly config?: string;
  readonly at?: string;
  readonly secretFile?: string;
}

/** Returns what writes the commands in words of this command. A configuration that can't be read names no place. */
export function adviceOf(command: Command): (text: string) => string {
  const place = (): CommandPlace => {
    const asked = command.opts<Asked>();
    const config = configOf(command, { withoutRecord: true });
    const composed = composeCluster();
    const there = placeOf(config, composed ?? { dataDir: config.dataDir, processes: [] });
    if (command.options.some(({ long }) => long === "--at")) return placeOfLocation(there, asked);
    // In the package the folder depends on where the command is typed.
    const isDefault =
      !isPackage(root) && asked.data === undefined && asked.config === undefined && config.dataDir === join(homeFolder, ".stamp");
    return isDefault && composed === undefined ? { ...there, dataDir: "" } : there;
  };
  let known: CommandPlace | undefined;
  return (text) => {
    if (!text.includes(`${ourName} `) && !text.includes("docker compose")) return text;
    try {
      known ??= place();
    } catch {
      return text;
    }
    return commandsAt(text, known);
  };
}

/** Stamps of a location are elsewhere: only what asks the location service is written. */
function placeOfLocation(there: CommandPlace, { data, at, secretFile }: Asked): CommandPlace {
  const { STAMP_NAME, STAMP_COMPOSE } = process.env;
  const options = [
    ...(data === undefined ? [] : ["--data", word(data)]),
    ...(at === undefined ? [] : ["--at", at]),
    ...(secretFile === undefined ? [] : ["--secret-file", word(secretFile)]),
  ];
  const location = options.map((each) => ` ${each}`).join("");
  const isContainer = STAMP_COMPOSE !== undefined && STAMP_NAME !== undefined;
  return { ...there, dataDir: isContainer ? inContainers : "", services: { "location-service-1": "location-service" }, location };
}
