/** The roles of a stamp in the order of a cold start. */
export const roles = ["lock-service", "extent-node", "stream-manager", "partition-manager", "partition-server", "front-end"] as const;
export type RoleName = (typeof roles)[number];
