/**
 * The page of the console: what a browser shows of a stamp. The door of the package has only the types of what the page is told; the page
 * itself begins at `main.tsx`, which the console bundles. Its components know nothing of HTTP (`source.ts` and `tabs.ts` do).
 */
export type {
  ExtentRow,
  Finding,
  LatencyRow,
  NodeRow,
  Page,
  Point,
  ProcessRow,
  RangeRow,
  Snapshot,
  StampEvent,
  State,
  StreamRow,
} from "./model.ts";
