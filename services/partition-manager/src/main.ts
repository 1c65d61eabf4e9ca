/** The process of the partition-manager: which range partition is on which server. */
import { runService } from "@stamp/ports-node";
import { PartitionManagerRole, partitionManagerConfigSchema } from "./index.ts";

await runService({
  role: "partition-manager",
  schema: partitionManagerConfigSchema,
  create: (world, config) => new PartitionManagerRole(world, config),
});
