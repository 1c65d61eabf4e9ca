/**
 * The supervisor as a process of its own (`stamp up -d`). Takes its configuration as JSON from STAMP_CLUSTER, and makes a new
 * stamp if STAMP_CLUSTER_INIT is true. With STAMP_LOCATION, supervises a location service instead. Writes the reason of a
 * failed start to standard error, which `up` shows.
 */

import { inWords, isSystemError, withSourcePlaces } from "@stamp/ports-node";
import { clusterConfigSchema } from "../config.ts";
import { LocationSupervisor } from "../location/location-supervisor.ts";
import { locationConfigSchema } from "../location/plan-location.ts";
import { ownTransport } from "../own-transport.ts";
import { StartError } from "../start-error.ts";
import { toldExitCode } from "./detach.ts";
import { type Running, runSupervisor, superviseUntilStopped } from "./run-supervisor.ts";

const root = process.env.STAMP_ROOT ?? process.cwd();
const location = process.env.STAMP_LOCATION === undefined ? undefined : locationConfigSchema.parse(JSON.parse(process.env.STAMP_LOCATION));
const config = clusterConfigSchema.parse(JSON.parse(process.env.STAMP_CLUSTER ?? "{}"));
const transport = ownTransport(location ?? config);

function run(): Promise<Running> {
  if (location !== undefined) return superviseUntilStopped(new LocationSupervisor({ config: location, root, transport }), () => {});
  return runSupervisor({ config, root, transport, initialise: process.env.STAMP_CLUSTER_INIT === "true" });
}

try {
  const running = await run();
  await running.stopped;
  await transport.close();
  process.exit(0);
} catch (error) {
  const reason = reasonOf(error);
  process.stderr.write(`${reason ?? withSourcePlaces((error as Error).stack ?? String(error))}\n`);
  process.exit(reason === undefined ? 1 : toldExitCode);
}

/** Returns the reason in words; undefined if the error is a bug, which its stack tells. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof StartError) return error.message;
  return isSystemError(error) ? inWords(error) : undefined;
}
