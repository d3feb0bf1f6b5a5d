import { type Dialect, PLAIN } from '../common/dialect.ts';

export const lmstudio: Dialect = {
  ...PLAIN,
  name: 'lmstudio',
  about: { speakers: 'LM Studio', unverified: 'Which models continue: they are tried, with tools as well.' },
  addresses: ['*:1234'],
  prefillWithTools: true,
  echoes: false,
};
