/**
 * The wall clock of each host, which can be set while its processes run: libfaketime (Debian package) between them and the system. Monotonic
 * clocks stay as they are, as on a machine whose clock is set. etcd is a Go program, asks the kernel itself, and keeps the true time.
 */
import { existsSync, globSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const [library] = globSync("/usr/lib/*/faketime/libfaketime.so.1");

/** Why no clock can be set here; undefined if they can. */
export const whyNoClocks: string | undefined =
  library === undefined ? "libfaketime is not installed (Debian package libfaketime)" : undefined;

/** Time between two looks of a process at its clock, in seconds. */
const lookEverySeconds = 1;
/** Longest time until a process notices, in milliseconds: a look, and half a second for the process to run. */
export const noticedWithinMs = 1_500;

export class HostClocks {
  readonly #folder = mkdtempSync(join(tmpdir(), "stamp-clocks-"));

  constructor(hosts: readonly string[]) {
    for (const host of hosts) this.set(host, 0);
  }

  /** Environment of the host's processes. */
  environment(host: string): Readonly<Record<string, string>> {
    return {
      LD_PRELOAD: library ?? "",
      FAKETIME_TIMESTAMP_FILE: this.#file(host),
      FAKETIME_CACHE_DURATION: String(lookEverySeconds),
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    };
  }

  /** Sets the clock of a host so many seconds ahead of the true time; below zero, behind it. */
  set(host: string, seconds: number): void {
    const next = `${this.#file(host)}.next`;
    writeFileSync(next, `${seconds < 0 ? "" : "+"}${seconds}\n`);
    renameSync(next, this.#file(host));
  }

  /** Call it when the processes have ended. Those that were killed left their shared memory. */
  close(): void {
    for (const left of globSync("/dev/shm/faketime_*_*"))
      if (!existsSync(`/proc/${left.slice(left.lastIndexOf("_") + 1)}`)) rmSync(left, { force: true });
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #file(host: string): string {
    return join(this.#folder, host);
  }
}
