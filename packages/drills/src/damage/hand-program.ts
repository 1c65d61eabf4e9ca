/**
 * Runs one act of the drill `damage` inside a container: takes it as JSON on standard input, and writes its result as JSON in its last line.
 *
 *   echo '{"do":"newest-copy"}' | node hand-program.ts /data extent-node-1
 */
import { text } from "node:stream/consumers";
import { actOn, type DamageAct } from "./hand.ts";

const [folder = "", name = ""] = process.argv.slice(2);
const act = JSON.parse(await text(process.stdin)) as DamageAct;
console.log(JSON.stringify(await actOn(folder, name, act)));
