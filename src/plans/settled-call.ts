/** A settled tool call. Never cut short: it is work that was done. */
export interface SettledCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}
