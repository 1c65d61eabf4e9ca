/**
 * Plans the two processes of a location on one machine: the location service, and the lock service that keeps its records.
 *
 *   port        gRPC of the location service
 *   port + 10   gRPC of its lock service
 *   port + 20   readiness of the location service
 *   port + 30   readiness of its lock service
 */
import { join } from "node:path";
import { z } from "zod";
import { environmentName } from "../config.ts";
import type { StartedProcess } from "../plan.ts";
import { secretFilesOf } from "../secret-files.ts";

export const locationConfigSchema = z.strictObject({
  /** Folder of both processes, their logs and their common secret. */
  dataDir: z.string().min(1),
  /** Address that all ports are opened on. */
  bind: z.string().min(1),
  port: z.number().int().min(1).max(65_000),
  logLevel: z.enum(["debug", "info", "warn", "error"]),
  /** A process's log file is rotated at this size, in bytes. */
  logBytesMax: z.number().int().min(1),
  restartAfterMs: z.number().int().min(1),
  stopTimeoutMs: z.number().int().min(1),
});
export type LocationConfig = z.infer<typeof locationConfigSchema>;

/** Returns the folder with the secrets of the stamps, one file each with the stamp's name. */
export const stampSecretsIn = (dataDir: string): string => join(dataDir, "stamp-secrets");

/** Returns the processes of a location, in the order of a cold start. */
export function planLocation(config: LocationConfig): readonly [lock: StartedProcess, service: StartedProcess] {
  const { dataDir, bind, port, logLevel } = config;
  const { current, previous } = secretFilesOf({ dataDir });
  const lockService = `${bind}:${port + 10}`;
  const planned = (role: string, name: string, grpc: string, http: string, more: Readonly<Record<string, string>>): StartedProcess => {
    const secrets = { clusterSecretFile: current, clusterSecretPreviousFile: previous };
    const settings = { name, listen: grpc, http, dataDir: join(dataDir, name), logLevel, ...secrets, ...more };
    const environment = Object.fromEntries(Object.entries(settings).map(([key, value]) => [environmentName(key), value]));
    return { role, name, grpc, http, environment };
  };
  return [
    planned("lock-service", "location-lock-service", lockService, `${bind}:${port + 30}`, {}),
    planned("location-service", "location-service-1", `${bind}:${port}`, `${bind}:${port + 20}`, {
      lockService,
      stampSecretsDir: stampSecretsIn(dataDir),
      // All stamps of the machine share a disk: another stamp has no more room. Extent nodes refuse writes before it is full.
      refuseAboveUsed: "0.95",
    }),
  ];
}
