/** The process of the extent-node: extents and blocks on its own disk. */
import { runService } from "@stamp/ports-node";
import { ExtentNodeRole, extentNodeSchema } from "./index.ts";

await runService({ role: "extent-node", schema: extentNodeSchema, create: (world, config) => new ExtentNodeRole(world, config) });
