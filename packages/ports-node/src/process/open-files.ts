/**
 * Connections that fit into the open files of this process. Each connection is an open file. A process that has none left answers nobody: neither
 * the rest of its stamp nor the health door. So the doors for clients together never have all of them, and a client that opens many
 * connections takes the places of its own, as beyond `connectionsMax`.
 */
import { readFileSync } from "node:fs";
import type { Logger } from "@stamp/ports";
import { defaultHttpLimits, type HttpLimits } from "../http/http-limits.ts";

/** Files for everything but the connections of clients: sockets that listen (16 for each door), internal connections, stores, logs. */
const keptFiles = 160;
const connectionsMin = 8;

/** Returns how many files the process may have open, as /proc/self/limits tells it; undefined where nothing does, or if there is no bound. */
export function openFilesMax(limits: string = ownLimits()): number | undefined {
  const [, soft] = /^Max open files\s+(\d+)/m.exec(limits) ?? [];
  return soft === undefined ? undefined : Number(soft);
}

function ownLimits(): string {
  try {
    return readFileSync("/proc/self/limits", "utf8");
  } catch {
    return "";
  }
}

/** Connections for each of `doors` doors, if the process may have `files` files open. */
export const connectionsThatFit = (files: number, doors: number): number =>
  Math.max(connectionsMin, Math.floor((files - keptFiles) / doors));

/** Returns the doors with as many connections as fit, and warns if that is fewer than was asked for. */
export function fittedDoors<Door extends { readonly limits?: Partial<HttpLimits> }>(
  doors: readonly Door[],
  logger: Pick<Logger, "warn">,
  files: number | undefined = openFilesMax(),
): (Door & { readonly limits: Partial<HttpLimits> })[] {
  const fit = files === undefined ? Number.POSITIVE_INFINITY : connectionsThatFit(files, doors.length);
  const wanted = (door: Door): number => door.limits?.connectionsMax ?? defaultHttpLimits.connectionsMax;
  if (doors.some((door) => wanted(door) > fit))
    logger.warn(
      "the doors take fewer connections, because the process may open few files: raise ulimit -n, LimitNOFILE or --ulimit nofile",
      {
        openFilesMax: files,
        connectionsOfDoor: fit,
      },
    );
  return doors.map((door) => ({ ...door, limits: { ...door.limits, connectionsMax: Math.min(wanted(door), fit) } }));
}
