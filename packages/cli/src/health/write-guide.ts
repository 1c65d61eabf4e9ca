/** Writes docs/guides/health.md, docs/guides/stamp-alerts.yml and docs/guides/prometheus.yml. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { clusterConfigSchema, planCluster } from "@stamp/cluster";
import { alertsPath, alertsText, guidePath, guideText, scrapePath, scrapeText } from "./guide.ts";

const root = join(import.meta.dirname, "../../../..");
writeFileSync(join(root, guidePath), guideText());
writeFileSync(join(root, alertsPath), alertsText());
writeFileSync(join(root, scrapePath), scrapeText(planCluster(clusterConfigSchema.parse({})).processes));
