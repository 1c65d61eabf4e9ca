/**
 * Transports to the geo doors of other stamps that have secrets of their own: `<folder>/<stamp>` holds what `stamp secret geo-peer` of that stamp
 * wrote for this one, and `<folder>/<stamp>-certs` what `stamp certs cluster issue --role geo-peer` of that stamp wrote, if it has TLS between its processes.
 * What a release before wrote there is taken, too, as long as that stamp takes it: a secret that all its peers share, and a certificate of the
 * role `partition-server`.
 *
 * Keys of accounts are sent only where the other side proves to be that stamp, by its certificate or by a secret of this pair of stamps: calls go out
 * after the server has proven what it has (bus-client.ts).
 *
 * Files that can't be used refuse the calls to that stamp, with the reason, and are read again at the next call. They end nothing else.
 */
import { existsSync } from "node:fs";
import { basename, join } from "node:path";
import { type Outcome, ok, refused } from "@stamp/base";
import type { World } from "@stamp/ports";
import { ConfigError } from "../process/config.ts";
import { geoPeerCredential, provesDoor } from "../secrets/given-secrets.ts";
import { PeerCertificates } from "../secrets/peer-certificates.ts";
import { GrpcTransport } from "./transport.ts";

/** Name of the files with a certificate of the role `geo-peer`, without `.pem` and `-key.pem`. */
export const geoPeerFile = "geo-peer";

interface Peer {
  readonly transport: GrpcTransport;
  readonly clusterSecretFile: string;
  readonly hasTls: boolean;
}

/**
 * Returns the transport to a stamp, by its name; `forKeys`: refused where another peer of that stamp could answer in its place. `ownName`: name of
 * the own stamp; empty: its secrets say it.
 */
export function peerTransports(
  { clock, logger }: Pick<World, "clock" | "logger">,
  folder: string,
  ownName: string,
): (stamp: string, forKeys?: boolean) => Outcome<GrpcTransport> {
  const peers = new Map<string, Peer>();
  const peerAt = (stamp: string): Outcome<Peer> => {
    const known = peers.get(stamp);
    if (known !== undefined) return ok(known);
    if (basename(stamp) !== stamp) return refused("invalidArgument", "badRequest", `stamp ${stamp}: its name is no name of a file`);
    const clusterSecretFile = join(folder, stamp);
    if (!existsSync(clusterSecretFile))
      return refused("failedPrecondition", "notReady", `the secret of stamp ${stamp} is not there: ${clusterSecretFile}`);
    const at = (file: string): string => join(`${clusterSecretFile}-certs`, file);
    const isOld = !existsSync(at(`${geoPeerFile}.pem`)) && existsSync(at("partition-server.pem"));
    const name = isOld ? "partition-server" : geoPeerFile;
    const files = { cert: at(`${name}.pem`), key: at(`${name}-key.pem`), ca: at("ca.pem") };
    if (isOld) logger.warn("the certificate for another stamp opens more than its geo door: replace it", { stamp, file: files.cert });
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
      credential: () => geoPeerCredential(clusterSecretFile, ownName),
      tls: tls === undefined ? undefined : () => tls.tls,
    });
    const peer = { transport, clusterSecretFile, hasTls: tls !== undefined };
    peers.set(stamp, peer);
    return ok(peer);
  };
  return (stamp, forKeys = false) => {
    const peer = peerAt(stamp);
    if (!peer.ok) return peer;
    const { transport, clusterSecretFile, hasTls } = peer.value;
    return !forKeys || hasTls || provesDoor(clusterSecretFile, ownName) ? ok(transport) : notProven(stamp, clusterSecretFile);
  };
}

const notProven = (stamp: string, file: string) =>
  refused(
    "failedPrecondition",
    "unauthorized",
    `no keys of accounts are sent to stamp ${stamp}: every peer of it may know the secret in ${file}. Put one of this pair of stamps there, ` +
      `made at stamp ${stamp} (./stamp secret geo-peer --for THIS-STAMP, docs/guides/geo.md)`,
  );
