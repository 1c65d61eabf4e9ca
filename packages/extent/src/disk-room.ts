/**
 * What a node takes while its disk fills. Beyond the high-water mark no new extents: what is open can still grow. Below the reserve no bytes:
 * what is left is for the journal, headers and the extent table, so that everything accepted can be brought to its end.
 */
export interface DiskRoom {
  readonly totalBytes: number;
  /** As of the last look. */
  readonly freeBytes: number;
  /** Of it: written since that look, or durable in the journal and still to be written. */
  readonly spokenForBytes: number;
  /** A write found no room, and none has succeeded since. */
  readonly full: boolean;
}

export interface RoomLimits {
  readonly highWaterPercent: number;
  readonly reserveBytes: number;
}

export function takesExtents(room: DiskRoom, limits: RoomLimits): boolean {
  const usedPercent = room.totalBytes === 0 ? 0 : (100 * (room.totalBytes - room.freeBytes + room.spokenForBytes)) / room.totalBytes;
  return usedPercent < limits.highWaterPercent && takesBytes(room, limits, 1);
}

export function takesBytes(room: DiskRoom, limits: RoomLimits, bytes: number): boolean {
  return !room.full && room.freeBytes - room.spokenForBytes - bytes >= limits.reserveBytes;
}
