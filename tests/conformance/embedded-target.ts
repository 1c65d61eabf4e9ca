/** A whole stamp in one process: every role, three replicas, the real disk. */
import { startStamp, threeOnDisk } from "@stamp/embedded";
import { copySources } from "./foreign.ts";
import { testIssuer } from "./issuer.ts";
import { accountKey, accountName } from "./scripted-stamp.ts";
import type { ConformanceTarget } from "./target.ts";

export async function embeddedTarget(): Promise<ConformanceTarget> {
  const issuer = await testIssuer();
  const stamp = await startStamp({ ...threeOnDisk, oidc: issuer.settings, copySources });
  return {
    endpoint: new URL(stamp.endpoints.blob).origin,
    accountName,
    accountKey,
    issuer,
    setBlobSettings: (settings) => stamp.setBlobSettings(settings),
    scopes: {
      create: (name) => stamp.createEncryptionScope(name),
      setDisabled: (name, disabled) => stamp.setEncryptionScopeState(name, { disabled }),
    },
    stop: () => stamp.stop().finally(() => issuer.remove()),
  };
}
