/** The suite against a front-end and a partition server over memory: nothing but the two is tested here. */
import { blobConformance } from "./index.ts";
import { accountKey, accountName, startScriptedStamp } from "./scripted-stamp.ts";

blobConformance("front-end and partition server over memory", async () => {
  const stamp = await startScriptedStamp();
  return { endpoint: stamp.endpoint, accountName, accountKey, stop: () => stamp.stop() };
});
