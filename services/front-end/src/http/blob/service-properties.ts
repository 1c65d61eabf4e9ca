/** Which properties of the Blob service are not here. */
import type { ServiceProperties } from "@stamp/azure-rest";
import { analyticsUnsupported } from "../service-properties.ts";

export function blobUnsupported(properties: ServiceProperties): string | undefined {
  if (properties.staticWebsite.enabled) return "Static websites";
  return analyticsUnsupported(properties);
}
