import { type Dialect, PLAIN } from '../common/dialect.ts';

export const cerebras: Dialect = {
  ...PLAIN,
  name: 'cerebras',
  about: { speakers: 'Cerebras', unverified: 'Whether models continue: they are tried.' },
  addresses: ['api.cerebras.ai'],
};
