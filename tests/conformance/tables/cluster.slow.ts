/** The suite, with the real SDK, against a cluster of real processes. */
import { startOwn } from "@stamp/cli";
import { tableConformance } from "./index.ts";

tableConformance("a cluster of processes", async () => {
  const target = await startOwn({}, false);
  const part = (name: string): string => new RegExp(`(?:^|;)${name}=([^;]+)`).exec(target.connectionString)?.[1] ?? "";
  return {
    endpoint: new URL(part("TableEndpoint")).origin,
    accountName: part("AccountName"),
    accountKey: part("AccountKey"),
    stop: () => target.close(),
  };
});
