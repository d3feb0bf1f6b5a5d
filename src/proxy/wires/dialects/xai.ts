import { type Dialect, PLAIN } from '../common/dialect.ts';

export const xai: Dialect = {
  ...PLAIN,
  name: 'xai',
  about: { speakers: 'xAI', unverified: 'Whether any model continues: there is always a nudge.' },
  addresses: ['api.x.ai', '*.api.x.ai'],
  prefill: false,
  echoes: false,
};
