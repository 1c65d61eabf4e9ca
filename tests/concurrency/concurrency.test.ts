/**
 * Three strategies for several writers of one object, end to end with the real SDKs: optimistic (ETag with If-Match), pessimistic (a lease),
 * last writer wins (neither). One file per kind of object; a message's pop receipt and visibility are its ETag and its lease.
 */
import { after, before } from "node:test";
import { blobScenarios } from "./blobs.ts";
import { World } from "./clients.ts";
import { entityScenarios } from "./entities.ts";
import { messageScenarios } from "./messages.ts";

let started: World | undefined;
const world = (): World => {
  if (!started) throw new Error("not started");
  return started;
};
before(async () => {
  started = await World.start();
});
after(() => started?.stop());

blobScenarios(world);
entityScenarios(world);
messageScenarios(world);
