/** Numbers and times as people read them, with their units. */

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytesText(bytes: number | null): string {
  if (bytes === null) return "–";
  let size = bytes;
  let unit = 0;
  while (size >= 1_024 && unit < units.length - 1) {
    size /= 1_024;
    unit++;
  }
  return `${unit === 0 ? Math.round(size) : size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const countText = (count: number): string => grouped.format(count);

export function rateText(perSecond: number | null): string {
  if (perSecond === null) return "–";
  return `${perSecond !== 0 && perSecond < 10 ? perSecond.toFixed(1) : grouped.format(perSecond)}/s`;
}

export const byteRateText = (perSecond: number | null): string => (perSecond === null ? "–" : `${bytesText(perSecond)}/s`);

export function msText(ms: number | null): string {
  if (ms === null) return "–";
  return ms >= 10_000 ? `${(ms / 1_000).toFixed(0)} s` : `${ms.toFixed(ms === 0 ? 0 : ms < 1 ? 2 : ms < 10 ? 1 : 0)} ms`;
}

export function spanText(ms: number): string {
  const seconds = Math.max(Math.floor(ms / 1_000), 0);
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** Time of day in the reader's zone. */
export const timeText = (atMs: number): string => new Date(atMs).toLocaleTimeString("en-GB");

/** Day and time of day in the reader's zone. */
export const dayText = (atMs: number): string => new Date(atMs).toLocaleString("sv-SE");

export const utcText = (atMs: number): string =>
  new Date(atMs)
    .toISOString()
    .replace("T", " ")
    .replace(/\.\d+Z$/, " UTC");
