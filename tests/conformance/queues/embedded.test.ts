/** The suite against a whole stamp in one process: every role, three replicas, the real disk. */
import { startStamp, threeOnDisk } from "@stamp/embedded";
import { testIssuer } from "../issuer.ts";
import { accountKey, accountName } from "../scripted-stamp.ts";
import { queueConformance } from "./index.ts";

queueConformance("embedded stamp", async () => {
  const issuer = await testIssuer();
  const stamp = await startStamp({ ...threeOnDisk, oidc: issuer.settings });
  return {
    endpoint: new URL(stamp.endpoints.queue).origin,
    accountName,
    accountKey,
    issuer,
    stop: () => stamp.stop().finally(() => issuer.remove()),
  };
});
