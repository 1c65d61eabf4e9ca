/** The answer of Get Page Ranges. Ends of ranges are inclusive there. */
import { element } from "../xml/xml-text.ts";

export interface ListedPageRange {
  readonly startBytes: number;
  /** End of the range in bytes, exclusive. */
  readonly endBytes: number;
  readonly cleared: boolean;
}

/** `nextMarker`: marker of the next page; empty at the end. */
export function pageListXml(ranges: readonly ListedPageRange[], nextMarker: string): string {
  let text = '<?xml version="1.0" encoding="utf-8"?><PageList>';
  for (const { startBytes, endBytes, cleared } of ranges) {
    const name = cleared ? "ClearRange" : "PageRange";
    text += `<${name}><Start>${startBytes}</Start><End>${endBytes - 1}</End></${name}>`;
  }
  return `${text}${nextMarker === "" ? "" : element("NextMarker", nextMarker)}</PageList>`;
}
