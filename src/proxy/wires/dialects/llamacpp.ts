import { type Dialect, eventFingerprint, PLAIN, withoutThinking } from '../common/dialect.ts';

/** The build's number and commit: `b0-unknown` where the server was not built from a git repository. */
const BUILD = /^b\d+-(?:[0-9a-f]+|unknown)$/;

const sign = eventFingerprint(
  '`system_fingerprint` like `b4798-1782cdfe`, or `timings`',
  (event) => BUILD.test(String(event.system_fingerprint)) || 'timings' in event,
);

/** Below `/v1` whatever the base URL: only what imitates OpenAI is there without it as well. */
const streamUrl = (base_url: string, id: string): string =>
  `${base_url.replace(/\/(v1\/?)?$/, '')}/v1/stream?conv_id=${id}`;

/** Some builds repeat the prefix although `echo` is false. Older ones refuse a prefix while thinking is on. */
export const llamacpp: Dialect = {
  ...PLAIN,
  name: 'llamacpp',
  about: {
    speakers: 'llama.cpp server',
    unverified:
      'Whether a build echoes the reasoning as well: reasoning that was cut before any text is generated anew. That a build which still reads the prompt stops when it is told to: for that it looks at the connection, which is closed as well. Whether what stands in front of a server has an ear for that: after the first time it had none, answers are not kept for a day.',
  },
  sign,
  prefill: true,
  prefillWithTools: true,
  echoes: false,
  keepsSpace: true,
  nudgeParameters: withoutThinking,
  prefillParameters: (interrupted) => ({
    continue_final_message: true,
    add_generation_prompt: false,
    echo: false,
    ...withoutThinking(interrupted),
  }),
  keeps: {
    counts: 'bytes',
    id: { in: 'request', header: 'x-conversation-id' },
    resumeUrl: (base_url, id, from) => `${streamUrl(base_url, id)}&from=${from}`,
    stopUrl: streamUrl,
  },
};
