/** The conformance suite of the Blob service, with the real SDK, against a cluster of real processes. */
import { unwrap } from "@stamp/base";
import { startOwn } from "@stamp/drills";
import { Accounts } from "@stamp/wire";
import { copySources } from "./foreign.ts";
import { blobConformance, type ConformanceTarget, quickParts, slowParts } from "./index.ts";
import { testIssuer } from "./issuer.ts";

/** For so long a front-end may hold an account as it was. */
const accountCacheMs = 5_500;

/** An account that was read so recently is not read again for a scope that it does not have. */
const rereadAfterMs = 300;

blobConformance("a cluster of processes", open, undefined, { ...quickParts, ...slowParts });

async function open(): Promise<ConformanceTarget> {
  const issuer = await testIssuer();
  const { oidcRoles, ...settings } = issuer.settings;
  const target = await startOwn({ copySources, roles: { "front-end": { ...settings, oidcRoles: JSON.stringify(oidcRoles) } } }, false);
  const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(target.connectionString)?.[1] ?? "";
  return {
    setBlobSettings: async (changes) => {
      const leader = target.transport.client(await target.inspector.leader("partition-manager"), Accounts);
      unwrap(await leader.setBlobSettings({ account: part("AccountName"), ...changes }, { timeoutMs: 10_000 }));
      await new Promise((resolve) => setTimeout(resolve, accountCacheMs));
    },
    scopes: {
      create: async (name) => {
        const leader = target.transport.client(await target.inspector.leader("partition-manager"), Accounts);
        unwrap(await leader.createEncryptionScope({ account: part("AccountName"), scope: name }, { timeoutMs: 10_000 }));
        await new Promise((resolve) => setTimeout(resolve, rereadAfterMs));
      },
      setDisabled: async (name, disabled) => {
        const leader = target.transport.client(await target.inspector.leader("partition-manager"), Accounts);
        unwrap(await leader.setEncryptionScopeState({ account: part("AccountName"), scope: name, disabled }, { timeoutMs: 10_000 }));
        await new Promise((resolve) => setTimeout(resolve, accountCacheMs));
      },
    },
    endpoint: new URL(part("BlobEndpoint")).origin,
    accountName: part("AccountName"),
    accountKey: part("AccountKey"),
    issuer,
    stop: async () => {
      await target.close().finally(() => issuer.remove());
    },
  };
}
