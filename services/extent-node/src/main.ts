/** The process `extent-node`. */
import { join } from "node:path";
import { NodeDisk, runService } from "@stamp/ports-node";
import { extentNodeSchema } from "./config.ts";
import { ExtentNodeRole } from "./extent-node.ts";

await runService({
  role: "extent-node",
  schema: extentNodeSchema,
  create: (world, config) =>
    new ExtentNodeRole(
      world,
      config,
      config.journalDir === undefined ? {} : { journalDisk: new NodeDisk(join(config.journalDir, config.name)) },
    ),
});
