export * from "./holder.ts";
export * from "./record.ts";
export * from "./table.ts";
