/** The suite, with the real SDK, against a cluster of real processes. */
import { startOwn } from "@stamp/drills";
import { testIssuer } from "../issuer.ts";
import { tableConformance } from "./index.ts";

tableConformance("a cluster of processes", async () => {
  const issuer = await testIssuer();
  const { oidcRoles, ...settings } = issuer.settings;
  const target = await startOwn({ roles: { "front-end": { ...settings, oidcRoles: JSON.stringify(oidcRoles) } } }, false);
  const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(target.connectionString)?.[1] ?? "";
  return {
    endpoint: new URL(part("TableEndpoint")).origin,
    accountName: part("AccountName"),
    accountKey: part("AccountKey"),
    issuer,
    stop: () => target.close().finally(() => issuer.remove()),
  };
});
