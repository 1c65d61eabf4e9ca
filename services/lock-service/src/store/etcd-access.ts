/** How a lock service reaches etcd, from its configuration. Files are read by whoever starts the process. */
import { type Outcome, ok, refused } from "@stamp/base";
import { EtcdClient, EtcdKeys, type EtcdOptions } from "@stamp/etcd";
import { addressesIn, type ForeignTls, type World, whyNoAddress } from "@stamp/ports";
import type { LockServiceConfig } from "../config.ts";

/** Contents of the files that the configuration names. */
export interface EtcdSecrets {
  readonly tls?: ForeignTls | undefined;
  readonly password?: string | undefined;
}

export interface EtcdAccess {
  readonly client: EtcdClient;
  readonly keys: EtcdKeys;
}

/** Reads the files that the configuration names. Refused if the settings do not fit together. */
export function etcdSecrets(config: LockServiceConfig, read: (path: string) => string): Outcome<EtcdSecrets> {
  const { etcdCaFile, etcdCertFile, etcdEndpoints, etcdKeyFile, etcdPasswordFile, etcdUser } = config;
  const strange = addressesIn(etcdEndpoints).flatMap((text) => whyNoAddress(text) ?? []);
  if (strange.length > 0) return wrong(`etcdEndpoints: ${strange.join("; ")}`);
  if ((etcdCertFile === "") !== (etcdKeyFile === "")) return wrong("etcdCertFile, etcdKeyFile: one is not there without the other");
  if (etcdCertFile !== "" && etcdCaFile === "") return wrong("etcdCaFile: is needed with etcdCertFile");
  if ((etcdUser === "") !== (etcdPasswordFile === "")) return wrong("etcdUser, etcdPasswordFile: one is not there without the other");
  const pair = etcdCertFile === "" ? {} : { cert: read(etcdCertFile), key: read(etcdKeyFile) };
  return ok({
    tls: etcdCaFile === "" ? undefined : { ca: read(etcdCaFile), ...pair },
    password: etcdPasswordFile === "" ? undefined : read(etcdPasswordFile).replace(/\r?\n$/, ""),
  });
}

/** Returns access to etcd. Refuses if the configuration names no member. */
export function etcdAccess(world: World, config: LockServiceConfig, secrets: EtcdSecrets): Outcome<EtcdAccess> {
  const endpoints = addressesIn(config.etcdEndpoints);
  if (endpoints.length === 0) return wrong("etcdEndpoints: names no member of etcd (host:port, separated by commas)");
  const prefix = config.etcdPrefix.endsWith("/") ? config.etcdPrefix : `${config.etcdPrefix}/`;
  const user = config.etcdUser === "" ? undefined : { name: config.etcdUser, password: secrets.password ?? "" };
  const options: EtcdOptions = { endpoints, tls: secrets.tls, user, prefix };
  return ok({ client: new EtcdClient(world, options), keys: new EtcdKeys(prefix) });
}

const wrong = (message: string): Outcome<never> => refused("invalidArgument", "badRequest", message);
