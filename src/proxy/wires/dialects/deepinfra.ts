import { type Dialect, PLAIN } from '../common/dialect.ts';

export const deepinfra: Dialect = {
  ...PLAIN,
  name: 'deepinfra',
  about: { speakers: 'DeepInfra', unverified: 'Whether models continue: they are tried.' },
  addresses: ['api.deepinfra.com'],
};
