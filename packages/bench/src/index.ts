/**
 * Benchmarks for tests: measurements of turns of the event loop (`measureTurns`). Everything else is a command:
 * `./stamp bench --help`.
 */
export { measureTurns } from "./turns/bench.ts";
export { isWrong, type TurnRow } from "./turns/measure.ts";
