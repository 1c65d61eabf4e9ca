/**
 * The page of the console: what a browser shows of a stamp. The door of the package has only the types of what the page is told; the page
 * itself begins at `main.tsx`, which the console bundles. Its components know nothing of HTTP (`source.ts`, `data/data-source.ts` and `tabs.ts` do).
 */
export type {
  AccountDetails,
  AccountRow,
  BlobDetails,
  BlobPast,
  BlobPath,
  BlobRow,
  ContainerRow,
  EntityRow,
  MessageRow,
  Named,
  QueueRow,
  Usage,
  UsagePage,
  Value,
} from "./data/data-model.ts";
export type {
  CopyRow,
  DiskRow,
  DivergedReport,
  DrillRow,
  DrillRun,
  Drills,
  ExtentRow,
  FaultRow,
  Finding,
  Geo,
  LatencyRow,
  NodeRow,
  Page,
  Point,
  ProcessRow,
  RangeRow,
  Snapshot,
  StampEvent,
  StampRow,
  State,
  StreamRow,
} from "./model.ts";
