/** A whole stamp in this one process, until SIGTERM or the end of standard input. */
import { startStamp, threeOnDisk } from "@stamp/embedded";

const stamp = await startStamp(threeOnDisk);
process.stdout.write(`${stamp.connectionString}\n`);
const stop = (): void => void stamp.stop().then(() => process.exit(0));
process.once("SIGTERM", stop);
process.stdin.once("end", stop).resume();
