/** Writes docs/guides/health.md and docs/guides/stamp-alerts.yml. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { alertsPath, alertsText, guidePath, guideText } from "./guide.ts";

const root = join(import.meta.dirname, "../../../..");
writeFileSync(join(root, guidePath), guideText());
writeFileSync(join(root, alertsPath), alertsText());
