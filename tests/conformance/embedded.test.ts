/** The suite against a whole stamp in one process: every role, three replicas, the real disk. */
import { startStamp } from "@stamp/embedded";
import { blobConformance } from "./index.ts";
import { accountKey, accountName } from "./scripted-stamp.ts";

blobConformance("embedded stamp", async () => {
  const stamp = await startStamp();
  return { endpoint: new URL(stamp.endpoints.blob).origin, accountName, accountKey, stop: () => stamp.stop() };
});
