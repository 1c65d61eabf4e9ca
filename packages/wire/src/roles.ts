/** Roles of callers, as they travel on the wire and stand in certificates. `callers.ts` says what each may call. */

/**
 * Numbers of callers. They travel in the hello of the bus (docs/formats/bus.md) and are never given to another role.
 */
export const callerNumbers = {
  "lock-service": 1,
  "stream-manager": 2,
  "extent-node": 3,
  "partition-manager": 4,
  "partition-server": 5,
  "front-end": 6,
  operator: 7,
  "location-service": 8,
  "geo-peer": 9,
  "location-peer": 10,
} as const;

export type Caller = keyof typeof callerNumbers;
export const callers = Object.keys(callerNumbers) as Caller[];

export const isCaller = (text: string): text is Caller => Object.hasOwn(callerNumbers, text);

export type Callers = readonly Caller[] | "everybody";
