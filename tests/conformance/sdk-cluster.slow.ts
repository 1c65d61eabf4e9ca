/** The conformance suite of the Blob service, with the real SDK, against a cluster of real processes. */
import { startOwn } from "@stamp/cli";
import { blobConformance } from "./index.ts";

blobConformance("a cluster of processes", async () => {
  const target = await startOwn({}, false);
  const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(target.connectionString)?.[1] ?? "";
  return {
    endpoint: new URL(part("BlobEndpoint")).origin,
    accountName: part("AccountName"),
    accountKey: part("AccountKey"),
    stop: () => target.close(),
  };
});
