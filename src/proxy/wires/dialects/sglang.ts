import { type Dialect, PLAIN, withoutThinking } from '../common/dialect.ts';
import { eventFingerprint, hasChoiceField } from '../common/fingerprint.ts';

/** Opens a new turn and puts the prefix behind it: where a turn begins with thinking, the prefix would be a thought. */
export const sglang: Dialect = {
  ...PLAIN,
  name: 'sglang',
  about: { speakers: 'SGLang' },
  sign: eventFingerprint('`matched_stop`', (event) => hasChoiceField(event, 'matched_stop')),
  prefill: true,
  prefillWithTools: true,
  echoes: false,
  nudgeParameters: withoutThinking,
  prefillParameters: (interrupted) => ({ continue_final_message: true, ...withoutThinking(interrupted) }),
};
