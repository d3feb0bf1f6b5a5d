/** Thrown if an API refuses a request that its client sent correctly, which is the proxy's mistake. */
export const refused = (what: string): Error => new Error(`the API refuses this: ${what}`);
