/** The process that makes a bundle of the repository at the path that is its argument. Exits with 1 if it made none. */
import { setPriority } from "node:os";
import { makeBundleInTurn } from "./turn.ts";

/** Below what serves, also for esbuild, which inherits it. */
setPriority(10);
process.exit((await makeBundleInTurn(process.argv[2] ?? "")) ? 0 : 1);
