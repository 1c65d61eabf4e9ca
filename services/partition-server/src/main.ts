/** The process of the partition-server: object tables over streams. */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { ok, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import { credentialOf, GrpcTransport, makeMasterKeyOnce, PeerCertificates, runService, WatchedMasterKey } from "@stamp/ports-node";
import { PartitionServerRole, partitionServerConfigSchema, type TransportToStamp } from "./index.ts";

/** Transports to other stamps, one for each secret. */
function transportsTo(world: World, folder: string): TransportToStamp | undefined {
  if (folder === "") return undefined;
  const transports = new Map<string, GrpcTransport>();
  return (stamp) => {
    const clusterSecretFile = join(folder, stamp);
    if (basename(stamp) !== stamp) return refused("invalidArgument", "badRequest", `stamp ${stamp}: its name is no name of a file`);
    const known = transports.get(stamp);
    if (known === undefined && !existsSync(clusterSecretFile)) {
      return refused("failedPrecondition", "notReady", `the secret of stamp ${stamp} is not there: ${clusterSecretFile}`);
    }
    const transport = known ?? transportBy(world, clusterSecretFile);
    transports.set(stamp, transport);
    return ok(transport);
  };
}

/** A transport that proves the secret in a file, and the certificate beside it: `stamp certs cluster issue --role partition-server`. */
function transportBy({ clock, logger }: World, clusterSecretFile: string): GrpcTransport {
  const at = (file: string): string => join(`${clusterSecretFile}-certs`, file);
  const files = { cert: at("partition-server.pem"), key: at("partition-server-key.pem"), ca: at("ca.pem") };
  const certificates = existsSync(files.ca) ? new PeerCertificates(files, logger) : undefined;
  certificates?.watch();
  return new GrpcTransport({
    clock,
    logger,
    credential: () => credentialOf({ clusterSecretFile }, "partition-server"),
    tls: certificates === undefined ? undefined : () => certificates.tls,
  });
}

await runService({
  role: "partition-server",
  schema: partitionServerConfigSchema,
  create: (world, config) => {
    const idPath = config.masterKeyMake && config.masterKeyFile !== "" ? join(config.dataDir, "master-key.id") : undefined;
    if (idPath !== undefined) makeMasterKeyOnce(config.masterKeyFile, idPath);
    const masterKeys = new WatchedMasterKey(config, world.logger, idPath);
    masterKeys.watch();
    return new PartitionServerRole(world, config, undefined, masterKeys, transportsTo(world, config.geoPeerSecretsDir));
  },
});
