/**
 * Credentials of a process that calls another stamp, from the file with the secret that this stamp has given away. A file with the whole secret
 * of the stamp is taken, too, where all stamps are on one machine, or as releases before had it: then the secret that would have been given is
 * made from it here.
 */
import { geoPeerSecretOf, isDerivedSecret, locationSecretOf, stampNamedBy } from "../grpc/credentials/derived-secrets.ts";
import type { SecretCredential } from "../grpc/credentials/secret-credential.ts";
import { credentialWith, secretsOf } from "./cluster-secret.ts";

/**
 * Returns the credential of a stamp's partition server at the geo door of another stamp. `ownName`: name of its own stamp; empty: not known, and
 * a whole secret is proven as it is.
 */
export function geoPeerCredential(clusterSecretFile: string, ownName: string): SecretCredential {
  const secrets = secretsOf({ clusterSecretFile });
  const given = secrets.map((secret) => (isDerivedSecret(secret) || ownName === "" ? secret : geoPeerSecretOf(secret, ownName)));
  return credentialWith(given, "geo-peer");
}

/**
 * True if only a front-end of the other stamp can answer with what the file has: every secret was made for the own stamp, and the other one alone can
 * make it again. A secret that all peers of the stamp share is known to each of them.
 */
export const provesDoor = (clusterSecretFile: string, ownName: string): boolean =>
  secretsOf({ clusterSecretFile }).every((secret) => (isDerivedSecret(secret) ? stampNamedBy(secret) !== undefined : ownName !== ""));

/** Returns the credential of a location service at a stamp. With a whole secret, a stamp of the release before chooses that one. */
export function locationCredential(clusterSecretFile: string): SecretCredential {
  const secrets = secretsOf({ clusterSecretFile });
  const given = secrets.map((secret) => (isDerivedSecret(secret) ? secret : locationSecretOf(secret)));
  const [whole] = secrets;
  const also = secrets.length === 1 && whole !== undefined && whole !== given[0] ? [whole] : [];
  return credentialWith([...given, ...also], "location-service");
}

/** True if the file has the whole secret of a stamp. */
export const isWholeSecret = (clusterSecretFile: string): boolean =>
  secretsOf({ clusterSecretFile }).some((secret) => !isDerivedSecret(secret));
