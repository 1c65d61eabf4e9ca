/** The process of the location service: which stamps there are, and which of them has which account. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { GrpcTransport, isWholeSecret, locationCredential, PeerCertificates, runService } from "@stamp/ports-node";
import { LocationServiceRole, locationServiceSchema } from "./index.ts";

const wholeSecret =
  "the file has the whole secret of a stamp, and one with fewer rights is enough: replace it by what `stamp secret location` of that stamp prints";

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
      if (isWholeSecret(clusterSecretFile)) logger.warn(wholeSecret, { file: clusterSecretFile });
      return new GrpcTransport({
        clock,
        logger,
        credential: () => locationCredential(clusterSecretFile),
        tls: certificates === undefined ? undefined : () => certificates.tls,
      });
    }),
});
