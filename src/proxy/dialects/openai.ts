import { type Dialect, PLAIN } from './dialect.ts';

/** Accepts a trailing assistant message, but starts the answer anew. */
export const openai: Dialect = { ...PLAIN, name: 'openai', prefill: false };
