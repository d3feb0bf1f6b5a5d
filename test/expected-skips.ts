/** Acceptable reasons for a skipped test even if everything can be installed. */
export const EXPECTED_SKIPS: readonly RegExp[] = [
  // These depend on the machine's network and programs, which no test sets up.
  /^this machine has no address that others can reach$/,
  /^this machine has no Node before 22$/,
  // These depend on third-party programs outside Debian, and on privileges that not every machine grants.
  /^the agent cannot be installed: /,
  /^(LiteLLM|Portkey) cannot be had here: /,
  /^no network of its own can be made here: /,
];
