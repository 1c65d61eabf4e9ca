/** The process of the front-end: HTTP in, authenticate, route. */
import { NodeHttpClient, nodeWrittenFiles, oidcIssuer, runService } from "@stamp/ports-node";
import { type FrontEndConfig, FrontEndRole, frontEndConfigSchema, httpLimitsOf, loadInit } from "./index.ts";

const tlsOf = ({ tlsCert, tlsKey }: FrontEndConfig) => (tlsCert === "" ? undefined : { certificatePath: tlsCert, keyPath: tlsKey });

await runService({
  role: "front-end",
  schema: frontEndConfigSchema,
  create: (world, config) => new FrontEndRole(world, config, { issuerOf: oidcIssuer, http: new NodeHttpClient(), watchesHosts: true }),
  beforeDoors: async (role, { initFile }) => {
    if (initFile === "") return true;
    const done = role.initialise(() => loadInit(nodeWrittenFiles, initFile), nodeWrittenFiles);
    // The role has told why, and tells it with its status until it is stopped.
    return done.then(
      () => true,
      () => false,
    );
  },
  doors: (role, config) => [
    { name: "blob", listen: config.blobListen, handler: role.blob, tls: tlsOf(config), limits: httpLimitsOf(config) },
    { name: "queue", listen: config.queueListen, handler: role.queue, tls: tlsOf(config), limits: httpLimitsOf(config) },
    { name: "table", listen: config.tableListen, handler: role.table, tls: tlsOf(config), limits: httpLimitsOf(config) },
    { name: "dfs", listen: config.dfsListen, handler: role.dfs, tls: tlsOf(config), limits: httpLimitsOf(config) },
    { name: "file", listen: config.fileListen, handler: role.file, tls: tlsOf(config), limits: httpLimitsOf(config) },
  ],
});
