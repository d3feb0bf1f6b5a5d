import { type Dialect, PLAIN } from '../common/dialect.ts';
import { systemFingerprint } from '../common/fingerprint.ts';

/** Always goes on from a trailing assistant message. Tools are described at the end of that very message. */
export const tgi: Dialect = {
  ...PLAIN,
  name: 'tgi',
  about: { speakers: 'Text Generation Inference' },
  sign: systemFingerprint(
    'like `3.0.1-sha-bb9095a` or `3.0.1-native`',
    /^\d+\.\d+\.\d+\S*-(?:native|sha-[0-9a-f]+)/,
  ),
  prefill: true,
  echoes: false,
};
