/** Thrown for what an API refuses, although its client has sent something that it takes: that is a mistake of the proxy's. */
export const refused = (what: string): Error => new Error(`the API refuses this: ${what}`);
