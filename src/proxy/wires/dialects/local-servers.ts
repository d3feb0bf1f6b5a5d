import {
  type Dialect,
  eventFingerprint,
  type Fingerprint,
  hasChoiceField,
  PLAIN,
  systemFingerprint,
  withoutThinking,
} from '../common/dialect.ts';

/** Newer models leave a trailing assistant message open; the templates of others close it. */
export const ollama: Dialect = {
  ...PLAIN,
  name: 'ollama',
  about: { speakers: 'Ollama', unverified: 'Which models continue: they are tried, with tools as well.' },
  addresses: ['*:11434'],
  sign: systemFingerprint('`fp_ollama`', /^fp_ollama$/),
  prefillWithTools: true,
  echoes: false,
};

export const lmstudio: Dialect = {
  ...PLAIN,
  name: 'lmstudio',
  about: { speakers: 'LM Studio', unverified: 'Which models continue: they are tried, with tools as well.' },
  addresses: ['*:1234'],
  prefillWithTools: true,
  echoes: false,
};

/** Always continues a trailing assistant message. Describes tools at the end of that message. */
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

/** Opens a new turn and appends the prefix: if turns begin with reasoning, the prefix would become part of it. */
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

/** Fields for token ids are present but empty by default. */
const vllmSign: Fingerprint = {
  says: '`prompt_token_ids`, `token_ids`, or a `system_fingerprint` that begins with `vllm-`',
  isIn: ({ events }) =>
    events.some(
      (event) =>
        /^vllm-/.test(String(event.system_fingerprint)) ||
        'prompt_token_ids' in event ||
        hasChoiceField(event, 'token_ids'),
    ),
};

/** Both flags are required: with the default `add_generation_prompt` the request is refused. */
export const vllm: Dialect = {
  ...PLAIN,
  name: 'vllm',
  about: {
    speakers: 'vLLM, NVIDIA NIM, TensorRT-LLM',
    unverified: 'That TensorRT-LLM and every NIM take the fields: one that refuses them is asked by a nudge.',
  },
  addresses: ['integrate.api.nvidia.com'],
  sign: vllmSign,
  prefill: true,
  prefillWithTools: true,
  echoes: false,
  nudgeParameters: withoutThinking,
  prefillParameters: () => ({ continue_final_message: true, add_generation_prompt: false, echo: false }),
};

/** Build number and commit; `b0-unknown` for builds outside a git repository. */
const BUILD = /^b\d+-(?:[0-9a-f]+|unknown)$/;

const sign = eventFingerprint(
  '`system_fingerprint` like `b4798-1782cdfe`, or `timings`',
  (event) => BUILD.test(String(event.system_fingerprint)) || 'timings' in event,
);

/** Always below `/v1`; only OpenAI-compatible endpoints also exist without it. */
const streamUrl = (base_url: string, id: string): string =>
  `${base_url.replace(/\/(v1\/?)?$/, '')}/v1/stream?conv_id=${id}`;

/** Some builds repeat the prefix although `echo` is false. Older ones refuse a prefix while reasoning is enabled. */
export const llamacpp: Dialect = {
  ...PLAIN,
  name: 'llamacpp',
  about: {
    speakers: 'llama.cpp server',
    unverified:
      'Whether a build echoes the reasoning as well: reasoning that was cut before any text is generated again. That a build which still reads the prompt obeys the request to stop: for that it looks at the connection, which is closed as well. Whether what stands in front of a server has an ear for that: after the first time it had none, answers are not kept for a day.',
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
