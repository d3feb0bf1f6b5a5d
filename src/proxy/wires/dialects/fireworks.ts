import { type Dialect, PLAIN } from '../common/dialect.ts';

export const fireworks: Dialect = {
  ...PLAIN,
  name: 'fireworks',
  about: { speakers: 'Fireworks AI', unverified: 'Whether models continue: they are tried.' },
  addresses: ['api.fireworks.ai'],
};
