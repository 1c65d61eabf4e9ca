/** The process of the lock-service: leases with fencing epochs, and the metadata store. */
import { readFileSync } from "node:fs";
import { unwrap } from "@stamp/base";
import { runService } from "@stamp/ports-node";
import { etcdSecrets, LockServiceRole, lockServiceSchema } from "./index.ts";

await runService({
  role: "lock-service",
  schema: lockServiceSchema,
  create: (world, config) => new LockServiceRole(world, config, unwrap(etcdSecrets(config, (path) => readFileSync(path, "utf8")))),
});
