/** The process of the stream-manager: which extents make a stream, and which nodes hold them. */
import { runService } from "@stamp/ports-node";
import { StreamManagerRole, streamManagerSchema } from "./index.ts";

await runService({
  role: "stream-manager",
  schema: streamManagerSchema,
  create: (world, config) => new StreamManagerRole(world, config),
});
