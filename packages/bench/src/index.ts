export { isWrong, measureTurns, ratioOf, type TurnRow } from "./turns/bench.ts";
