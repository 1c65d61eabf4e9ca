/** The suite against a whole stamp in one process. */
import { embeddedTarget } from "./embedded-target.ts";
import { blobConformance } from "./index.ts";

blobConformance("embedded stamp", embeddedTarget);
