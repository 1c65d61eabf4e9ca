/**
 * The supervisor as a process of its own (`stamp up -d`). Takes its configuration as JSON from STAMP_CLUSTER, and makes a new
 * stamp if STAMP_CLUSTER_INIT is true; what it has to say about a
 * failed start goes to standard error, which `up` shows.
 */

import { inWords, isSystemError } from "@stamp/ports-node";
import { ConfigError, clusterConfigSchema } from "../config.ts";
import { ownTransport } from "../own-transport.ts";
import { StartError } from "../start-error.ts";
import { runSupervisor } from "./run-supervisor.ts";

const config = clusterConfigSchema.parse(JSON.parse(process.env.STAMP_CLUSTER ?? "{}"));
const root = process.env.STAMP_ROOT ?? process.cwd();
const transport = ownTransport(config);
try {
  const running = await runSupervisor({ config, root, transport, initialise: process.env.STAMP_CLUSTER_INIT === "true" });
  await running.stopped;
  await transport.close();
  process.exit(0);
} catch (error) {
  process.stderr.write(
    `${error instanceof StartError || error instanceof ConfigError ? error.message : isSystemError(error) ? inWords(error) : ((error as Error).stack ?? String(error))}\n`,
  );
  process.exit(1);
}
