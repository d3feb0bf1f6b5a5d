/** Reasons for which a test may be skipped even where everything can be installed. */
export const EXPECTED_SKIPS: readonly RegExp[] = [
  // Of the machine's network, which no test sets up.
  /^this machine has no address that others can reach$/,
  /^this machine has no Node before 22$/,
  // Of programs of others that are no part of Debian, and of a right that not every machine gives.
  /^the agent cannot be installed: /,
  /^(LiteLLM|Portkey) cannot be had here: /,
  /^no network of its own can be made here: /,
];
