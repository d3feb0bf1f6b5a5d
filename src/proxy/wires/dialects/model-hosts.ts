import type { DialectName } from '../../../config/dialect-names.ts';
import { type Dialect, PLAIN } from '../common/dialect.ts';

const host = (name: DialectName, speakers: string, ...addresses: string[]): Dialect => ({
  ...PLAIN,
  name,
  about: { speakers, unverified: 'Whether models continue: they are tried.' },
  addresses,
});

/** Clouds that serve open models. Nothing is known of any of them but its address. */
export const cerebras = host('cerebras', 'Cerebras', 'api.cerebras.ai');
export const deepinfra = host('deepinfra', 'DeepInfra', 'api.deepinfra.com');
export const fireworks = host('fireworks', 'Fireworks AI', 'api.fireworks.ai');
export const together = host('together', 'Together AI', 'api.together.xyz', 'api.together.ai');
