/** The process of the partition-server: object tables over streams. */
import { masterKeysOf, runService } from "@stamp/ports-node";
import { PartitionServerRole, partitionServerConfigSchema } from "./index.ts";

await runService({
  role: "partition-server",
  schema: partitionServerConfigSchema,
  create: (world, config) => new PartitionServerRole(world, config, undefined, masterKeysOf(config)),
});
