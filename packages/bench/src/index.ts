export { measureTurns } from "./turns/bench.ts";
export { isWrong, type TurnRow } from "./turns/measure.ts";
