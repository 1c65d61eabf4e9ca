/** Customer-provided keys against a cluster of real processes that serves HTTPS. */
import { startOwn } from "@stamp/drills";
import { testCertificate } from "./certificate.ts";
import { customerKeySuite } from "./customer-keys.ts";

customerKeySuite("a cluster of processes", async () => {
  const certificate = await testCertificate();
  const { certificatePath: tlsCert, keyPath: tlsKey } = certificate.tls;
  const target = await startOwn({ roles: { "front-end": { tlsCert, tlsKey } } }, false);
  const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(target.connectionString)?.[1] ?? "";
  return {
    endpoint: new URL(part("BlobEndpoint")).origin.replace(/^http:/, "https:"),
    accountName: part("AccountName"),
    accountKey: part("AccountKey"),
    ca: certificate.ca,
    stop: async () => {
      await target.close();
      certificate.remove();
    },
  };
});
