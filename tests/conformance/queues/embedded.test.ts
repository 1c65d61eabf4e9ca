/** The suite against a whole stamp in one process: every role, three replicas, the real disk. */
import { startStamp } from "@stamp/embedded";
import { accountKey, accountName } from "../scripted-stamp.ts";
import { queueConformance } from "./index.ts";

queueConformance("embedded stamp", async () => {
  const stamp = await startStamp();
  return { endpoint: new URL(stamp.endpoints.queue).origin, accountName, accountKey, stop: () => stamp.stop() };
});
