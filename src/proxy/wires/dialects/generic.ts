import { type Dialect, PLAIN } from '../common/dialect.ts';

/** An unknown server: whether it continues a trailing assistant message is tried once and remembered. */
export const generic: Dialect = { ...PLAIN, name: 'generic', about: { speakers: 'anything else' } };
