/**
 * A disk whose failed fsync ends the process (docs/faults.md, "fsync fails"): what was written since the last good one may be gone, and the
 * next fsync would not say so. Everything that this node writes goes through it; nobody below has to remember.
 */
import { type Disk, DiskError, type DiskFile } from "@stamp/ports";

export function failStopDisk(disk: Disk, fatal: (reason: string) => void): Disk {
  const guarded = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      if (error instanceof DiskError && error.kind === "syncFailed") fatal(`a sync of the disk failed: ${error.message}`);
      throw error;
    }
  };
  const file = (inner: DiskFile): DiskFile => ({
    path: inner.path,
    sizeBytes: () => inner.sizeBytes(),
    read: (offsetBytes, lengthBytes, into) => inner.read(offsetBytes, lengthBytes, into),
    write: (offsetBytes, chunks) => inner.write(offsetBytes, chunks),
    allocate: (lengthBytes) => guarded(inner.allocate(lengthBytes)),
    truncate: (lengthBytes) => inner.truncate(lengthBytes),
    sync: () => guarded(inner.sync()),
    close: () => inner.close(),
  });
  return {
    open: async (path, options) => file(await disk.open(path, options)),
    exists: (path) => disk.exists(path),
    list: (folder) => disk.list(folder),
    remove: (path) => disk.remove(path),
    rename: (from, to) => disk.rename(from, to),
    syncFolder: (folder) => guarded(disk.syncFolder(folder)),
    writeAtomically: (path, content) => guarded(disk.writeAtomically(path, content)),
    readWhole: (path) => disk.readWhole(path),
    space: () => disk.space(),
  };
}
