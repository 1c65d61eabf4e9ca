/** The conformance suite of the Blob service, with the real SDK, against a cluster of real processes. */
import { startOwn } from "@stamp/cli";
import { blobConformance } from "./index.ts";
import { testIssuer } from "./issuer.ts";

blobConformance("a cluster of processes", async () => {
  const issuer = await testIssuer();
  const { oidcRoles, ...settings } = issuer.settings;
  const target = await startOwn({ roles: { "front-end": { ...settings, oidcRoles: JSON.stringify(oidcRoles) } } }, false);
  const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(target.connectionString)?.[1] ?? "";
  return {
    endpoint: new URL(part("BlobEndpoint")).origin,
    accountName: part("AccountName"),
    accountKey: part("AccountKey"),
    issuer,
    stop: () => target.close().finally(() => issuer.remove()),
  };
});
