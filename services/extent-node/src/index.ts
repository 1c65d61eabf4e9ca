export { type ExtentNodeConfig, extentNodeSchema } from "./config.ts";
export { ExtentNodeRole } from "./extent-node.ts";
