/** The process of the location service: which stamps there are, and which of them has which account. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { credentialOf, GrpcTransport, PeerCertificates, runService } from "@stamp/ports-node";
import { LocationServiceRole, locationServiceSchema } from "./index.ts";

await runService({
  role: "location-service",
  schema: locationServiceSchema,
  create: (world, config) =>
    new LocationServiceRole(world, config, (clusterSecretFile) => {
      const { clock, logger } = world;
      // A stamp with TLS between its processes has given this one a certificate: stamp certs cluster issue --role location-service.
      const folder = `${clusterSecretFile}-certs`;
      const [cert, key, ca] = [`${config.name}.pem`, `${config.name}-key.pem`, "ca.pem"].map((file) => join(folder, file)) as [
        string,
        string,
        string,
      ];
      const certificates = existsSync(folder) ? new PeerCertificates({ cert, key, ca }, logger) : undefined;
      certificates?.watch();
      return new GrpcTransport({
        clock,
        logger,
        credential: () => credentialOf({ clusterSecretFile }, "location-service"),
        tls: certificates === undefined ? undefined : () => certificates.tls,
      });
    }),
});
