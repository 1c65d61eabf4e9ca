/** What waits for time to pass, against a whole stamp in one process. */
import { embeddedTarget } from "./embedded-target.ts";
import { blobConformance, slowParts } from "./index.ts";

blobConformance("embedded stamp", embeddedTarget, undefined, slowParts);
