export { type Stamp, type StartOptions, startStamp } from "./start-stamp.ts";
