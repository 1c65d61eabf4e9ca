/** The process of the extent-node: extents and blocks on its own disk. */
import { runService } from "@stamp/ports-node";
import { ExtentNodeRole, extentNodeConfig } from "./index.ts";

await runService({ role: "extent-node", schema: extentNodeConfig, create: (world, config) => new ExtentNodeRole(world, config) });
