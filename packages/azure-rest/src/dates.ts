/**
 * Dates of HTTP (RFC 1123, always GMT; its two obsolete forms too) and ISO 8601, from and to milliseconds since 1970-01-01 UTC, without a
 * clock. The calendar is the proleptic Gregorian one (days from civil, by counting from March).
 */
const dayNames = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;
const monthNames = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"] as const;
const dayMs = 86_400_000;

export interface CivilTime {
  readonly year: number;
  /** Month, 1 to 12. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly millisecond: number;
  /** Day of the week; 0 is Sunday. */
  readonly weekday: number;
}

function daysOf(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** Returns the midnight of a day. A day or month that does not exist gives another one: compare with `civilTime`. */
export const civilMs = (year: number, month: number, day: number): number => daysOf(year, month, day) * dayMs;

export function civilTime(ms: number): CivilTime {
  const days = Math.floor(ms / dayMs);
  const rest = Math.floor(ms - days * dayMs);
  const z = days + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1,
    hour: Math.floor(rest / 3_600_000),
    minute: Math.floor(rest / 60_000) % 60,
    second: Math.floor(rest / 1000) % 60,
    millisecond: rest % 1000,
    weekday: (((days + 4) % 7) + 7) % 7,
  };
}

const twoDigits: readonly string[] = Array.from({ length: 100 }, (_, value) => String(value).padStart(2, "0"));
/** Returns the text of 0 to 99 in two digits. */
const two = (value: number): string => twoDigits[value] as string;

/** The day that was formatted last, in days since 1970, and its text: dates that follow one another are mostly of one day. */
let lastDay = Number.NaN;
let lastDayText = "";

/** Returns a text such as "Sun, 06 Nov 1994 08:49:37 GMT". Fractions of a second are cut. */
export function formatRfc1123(ms: number): string {
  const day = Math.floor(ms / dayMs);
  const seconds = Math.floor((ms - day * dayMs) / 1000);
  if (day !== lastDay) {
    const t = civilTime(ms);
    lastDayText = `${dayNames[t.weekday]}, ${two(t.day)} ${monthNames[t.month - 1]} ${String(t.year).padStart(4, "0")} `;
    lastDay = day;
  }
  const minutes = Math.floor(seconds / 60);
  return `${lastDayText}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}:${two(seconds % 60)} GMT`;
}

/** Returns a text such as "1994-11-06T08:49:37.1230000Z", with seven digits as the service writes it. */
export function formatIso(ms: number): string {
  const t = civilTime(ms);
  const date = `${String(t.year).padStart(4, "0")}-${two(t.month)}-${two(t.day)}`;
  return `${date}T${two(t.hour)}:${two(t.minute)}:${two(t.second)}.${String(t.millisecond).padStart(3, "0")}0000Z`;
}

const rfc1123 =
  /^(Sun|Mon|Tue|Wed|Thu|Fri|Sat), (\d{2}) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/;

/** Returns undefined for anything else, also for days that don't exist and for a weekday that is wrong. */
export function parseRfc1123(text: string): number | undefined {
  const match = rfc1123.exec(text);
  if (!match) return undefined;
  const [, weekday, day, monthName, year, hour, minute, second] = match as unknown as string[];
  const month = monthNames.indexOf(monthName as (typeof monthNames)[number]) + 1;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const days = daysOf(Number(year), month, Number(day));
  const ms = days * dayMs + Number(hour) * 3_600_000 + Number(minute) * 60_000 + Number(second) * 1000;
  const back = civilTime(ms);
  return back.day === Number(day) && back.month === month && dayNames[back.weekday] === weekday ? ms : undefined;
}

const rfc850 = /^(Sun|Mon|Tues|Wednes|Thurs|Fri|Satur)day, (\d{2})-([A-Z][a-z]{2})-(\d{2}) (\d{2}:\d{2}:\d{2}) GMT$/;
const asctime = /^([A-Z][a-z]{2}) ([A-Z][a-z]{2}) ([ \d]\d) (\d{2}:\d{2}:\d{2}) (\d{4})$/;

/**
 * Returns the time of a date in one of the three forms of HTTP (RFC 9110, 5.6.7): RFC 1123, RFC 850, asctime. Undefined for anything else.
 * The two digits of a year in RFC 850 are of the century in which the day has the weekday that is named: no two centuries between 1900
 * and 2099 agree, so no clock is needed.
 */
export function parseHttpDate(text: string): number | undefined {
  const old = rfc850.exec(text);
  if (old) {
    const [, weekday = "", day, month, year, time] = old;
    for (const century of ["19", "20"]) {
      const ms = parseRfc1123(`${weekday.slice(0, 3)}, ${day} ${month} ${century}${year} ${time} GMT`);
      if (ms !== undefined) return ms;
    }
    return undefined;
  }
  const [match, weekday, month, day = "", time, year] = asctime.exec(text) ?? [];
  return parseRfc1123(match === undefined ? text : `${weekday}, ${day.replace(" ", "0")} ${month} ${year} ${time} GMT`);
}

const iso = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?(Z|[+-]\d{2}:\d{2}))?$/;

/**
 * Parses a day, or a time to the minute, the second or seven digits of it, with its zone ("Formatting DateTime values"). What is smaller than a
 * millisecond is cut. Undefined for anything else.
 */
export function parseIso(text: string): number | undefined {
  const match = iso.exec(text);
  if (!match || !isCivilDate(match[1] as string)) return undefined;
  const [, date = "", hour = "0", minute = "0", second = "0", fraction = "0", zone = "Z"] = match;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return undefined;
  const [year, month, day] = date.split("-").map(Number) as [number, number, number];
  const zoneMinutes = zone === "Z" ? 0 : Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6));
  if (zoneMinutes > 14 * 60) return undefined;
  const minutes = Number(hour) * 60 + Number(minute) - (zone.startsWith("-") ? -zoneMinutes : zoneMinutes);
  return daysOf(year, month, day) * dayMs + minutes * 60_000 + Number(second) * 1000 + Math.floor(Number(`0.${fraction}`) * 1000);
}

/** True if "YYYY-MM-DD" names a day that exists. */
export function isCivilDate(text: string): boolean {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (!match) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  if (month < 1 || month > 12) return false;
  const back = civilTime(daysOf(year, month, day) * dayMs);
  return back.day === day && back.month === month && back.year === year;
}

/** Returns a text such as "2026-11-21T20:33:32.1234560Z" of microseconds since 1970: it names snapshots and versions. */
export const formatIsoMicros = (micros: number): string =>
  `${formatIso(Math.floor(micros / 1000)).slice(0, 23)}${String(micros % 1000).padStart(3, "0")}0Z`;

/**
 * Parses a time with up to seven digits behind the second; the last one is never used. Undefined if the text is no
 * time.
 */
export function parseIsoMicros(text: string): number | undefined {
  const match = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(?:\.(\d{1,7}))?Z$/.exec(text);
  const seconds = match ? parseIso(`${match[1]}Z`) : undefined;
  if (!match || seconds === undefined) return undefined;
  return seconds * 1000 + Math.floor(Number((match[2] ?? "0").padEnd(7, "0")) / 10);
}
