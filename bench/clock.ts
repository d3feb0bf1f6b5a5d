/** Microseconds of the monotonic clock, which all processes on the machine share. */
export function micros(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e6 + Math.round(nanoseconds / 1e3);
}
