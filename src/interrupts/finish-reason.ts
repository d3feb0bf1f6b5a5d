/** Failures that some providers dress as finish reasons, with the status they mean. */
const FAILURES: ReadonlyMap<string, number> = new Map([
  ['error', 502],
  ['abort', 502],
  ['aborted', 502],
  ['insufficient_system_resource', 503],
  ['overloaded_error', 529],
  ['api_error', 500],
  ['server_error', 500],
  ['network_error', 502],
  ['rate_limit_error', 429],
  ['timeout_error', 504],
]);

/** The HTTP status that a failure dressed as a finish reason stands for; unknown reasons are never guessed at. */
export const failureStatusOf = (reason: string): number | undefined => FAILURES.get(reason);
