/** The process of the partition-server: object tables over streams. */
import { join } from "node:path";
import { makeMasterKeyOnce, masterKeysOf, runService } from "@stamp/ports-node";
import { PartitionServerRole, partitionServerConfigSchema } from "./index.ts";

await runService({
  role: "partition-server",
  schema: partitionServerConfigSchema,
  create: (world, config) => {
    if (config.masterKeyMake && config.masterKeyFile !== "") makeMasterKeyOnce(config.masterKeyFile, join(config.dataDir, "master-key.id"));
    return new PartitionServerRole(world, config, undefined, masterKeysOf(config));
  },
});
