/** The process of the location service: which stamps there are, and which of them has which account. */
import { credentialOf, GrpcTransport, runService } from "@stamp/ports-node";
import { LocationServiceRole, locationServiceSchema } from "./index.ts";

await runService({
  role: "location-service",
  schema: locationServiceSchema,
  create: (world, config) =>
    new LocationServiceRole(world, config, (clusterSecretFile) => {
      const { clock, logger } = world;
      return new GrpcTransport({ clock, logger, credential: () => credentialOf({ clusterSecretFile }) });
    }),
});
