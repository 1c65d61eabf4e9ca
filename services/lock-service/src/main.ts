/** The process of the lock-service: leases with fencing epochs, and the metadata store. */
import { runService } from "@stamp/ports-node";
import { LockServiceRole, lockServiceSchema } from "./index.ts";

await runService({ role: "lock-service", schema: lockServiceSchema, create: (world, config) => new LockServiceRole(world, config) });
