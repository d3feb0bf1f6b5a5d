/** An address of an upstream. `path` is below its base URL, with which it is configured with or without a final slash. */
export const upstreamUrl = (base_url: string, path = ''): string => base_url.replace(/\/$/, '') + path;
