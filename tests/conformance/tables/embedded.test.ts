/** The suite against a whole stamp in one process: every role, three replicas, the real disk. */
import { startStamp } from "@stamp/embedded";
import { accountKey, accountName } from "../scripted-stamp.ts";
import { tableConformance } from "./index.ts";

tableConformance("embedded stamp", async () => {
  const stamp = await startStamp();
  return { endpoint: new URL(stamp.endpoints.table).origin, accountName, accountKey, stop: () => stamp.stop() };
});
