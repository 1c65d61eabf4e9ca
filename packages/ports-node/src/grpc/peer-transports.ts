/**
 * Transports to other stamps that have secrets of their own: `<folder>/<stamp>` holds the secret of the stamp, and `<folder>/<stamp>-certs` what
 * `stamp certs cluster issue --role partition-server` wrote there, if the stamp has TLS between its processes.
 *
 * Files that can't be used refuse the calls to that stamp, with the reason, and are read again at the next call. They end nothing else.
 */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { type Outcome, ok, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import { ConfigError } from "../process/config.ts";
import { credentialOf } from "../secrets/cluster-secret.ts";
import { PeerCertificates } from "../secrets/peer-certificates.ts";
import { GrpcTransport } from "./transport.ts";

/** Returns the transport to a stamp, by its name. */
export function peerTransports(
  { clock, logger }: Pick<World, "clock" | "logger">,
  folder: string,
): (stamp: string) => Outcome<GrpcTransport> {
  const transports = new Map<string, GrpcTransport>();
  return (stamp) => {
    const known = transports.get(stamp);
    if (known !== undefined) return ok(known);
    if (basename(stamp) !== stamp) return refused("invalidArgument", "badRequest", `stamp ${stamp}: its name is no name of a file`);
    const clusterSecretFile = join(folder, stamp);
    if (!existsSync(clusterSecretFile))
      return refused("failedPrecondition", "notReady", `the secret of stamp ${stamp} is not there: ${clusterSecretFile}`);
    const at = (file: string): string => join(`${clusterSecretFile}-certs`, file);
    const files = { cert: at("partition-server.pem"), key: at("partition-server-key.pem"), ca: at("ca.pem") };
    let certificates: PeerCertificates | undefined;
    try {
      certificates = existsSync(files.ca) ? new PeerCertificates(files, logger) : undefined;
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      return refused("failedPrecondition", "notReady", `certificates for stamp ${stamp}: ${error.message}`);
    }
    certificates?.watch();
    const tls = certificates;
    const transport = new GrpcTransport({
      clock,
      logger,
      credential: () => credentialOf({ clusterSecretFile }, "partition-server"),
      tls: tls === undefined ? undefined : () => tls.tls,
    });
    transports.set(stamp, transport);
    return ok(transport);
  };
}
