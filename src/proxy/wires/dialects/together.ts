import { type Dialect, PLAIN } from '../common/dialect.ts';

export const together: Dialect = {
  ...PLAIN,
  name: 'together',
  about: { speakers: 'Together AI', unverified: 'Whether models continue: they are tried.' },
  addresses: ['api.together.xyz', 'api.together.ai'],
};
