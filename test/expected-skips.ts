/** Reasons for which a test may be skipped even where everything can be installed. */
export const EXPECTED_SKIPS: readonly RegExp[] = [
  // Of the machine's network, which no test sets up.
  /^this machine has no address that others can reach$/,
];
