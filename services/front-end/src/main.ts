/** The process of the front-end: HTTP in, authenticate, route. */
import { runService } from "@stamp/ports-node";
import { FrontEndRole, frontEndConfigSchema } from "./index.ts";

await runService({
  role: "front-end",
  schema: frontEndConfigSchema,
  create: (world, config) => new FrontEndRole(world, config),
  doors: (role, config) => [
    { name: "blob", listen: config.blobListen, handler: role.blob },
    { name: "queue", listen: config.queueListen, handler: role.queue },
    { name: "table", listen: config.tableListen, handler: role.table },
  ],
});
