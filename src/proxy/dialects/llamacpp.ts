import { type Dialect, PLAIN } from './dialect.ts';
import { eventSign } from './sign.ts';
import { withoutThinking } from './template-options.ts';

/** The build's number and commit. */
const BUILD = /^b\d+-[0-9a-f]+$/;

const sign = eventSign(
  '`system_fingerprint` like `b4798-1782cdfe`, or `timings`',
  (event) => BUILD.test(String(event.system_fingerprint)) || 'timings' in event,
);

/** Some builds repeat the prefix although `echo` is false. Older ones refuse a prefix while thinking is on. */
export const llamacpp: Dialect = {
  ...PLAIN,
  name: 'llamacpp',
  about: {
    speakers: 'llama.cpp server',
    unverified:
      'Whether a build echoes the reasoning as well: reasoning that was cut before any text is generated anew.',
  },
  sign,
  prefill: true,
  prefillWithTools: true,
  prefillParameters: (interrupted) => ({
    continue_final_message: true,
    add_generation_prompt: false,
    echo: false,
    ...withoutThinking(interrupted),
  }),
};
