/** The process of the partition-server: object tables over streams. */
import { join } from "node:path";
import { makeMasterKeyOnce, peerTransports, runService, WatchedMasterKey } from "@stamp/ports-node";
import { PartitionServerRole, partitionServerConfigSchema } from "./index.ts";

await runService({
  role: "partition-server",
  schema: partitionServerConfigSchema,
  create: (world, config) => {
    const idPath = config.masterKeyMake && config.masterKeyFile !== "" ? join(config.dataDir, "master-key.id") : undefined;
    if (idPath !== undefined) makeMasterKeyOnce(config.masterKeyFile, idPath);
    const masterKeys = new WatchedMasterKey(config, world.logger, idPath);
    masterKeys.watch();
    const peers = config.geoPeerSecretsDir === "" ? undefined : peerTransports(world, config.geoPeerSecretsDir, config.geoStampName);
    return new PartitionServerRole(world, config, undefined, masterKeys, peers);
  },
});
