/**
 * The location service: the stamps of all locations, and which of them has which account. One leader by a lease of the
 * location's own lock service; its records are in that one's metadata store.
 */
export { type LocationServiceConfig, locationServiceSchema } from "./config.ts";
export { LocationServiceRole, type TransportOf } from "./location-service.ts";
export { locationServiceMetrics } from "./metrics.ts";
