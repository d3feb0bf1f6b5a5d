import { type Dialect, PLAIN, withoutThinking } from '../common/dialect.ts';
import { type Fingerprint, hasChoiceField } from '../common/fingerprint.ts';

/** Fields for token ids are sent empty unless they are asked for. */
const sign: Fingerprint = {
  says: '`prompt_token_ids`, `token_ids`, or a `system_fingerprint` that begins with `vllm-`',
  isIn: ({ events }) =>
    events.some(
      (event) =>
        /^vllm-/.test(String(event.system_fingerprint)) ||
        'prompt_token_ids' in event ||
        hasChoiceField(event, 'token_ids'),
    ),
};

/** Both flags are needed: with the default `add_generation_prompt` the request is refused. */
export const vllm: Dialect = {
  ...PLAIN,
  name: 'vllm',
  about: {
    speakers: 'vLLM, NVIDIA NIM, TensorRT-LLM',
    unverified: 'That TensorRT-LLM and every NIM take the fields: one that refuses them is asked by a nudge.',
  },
  addresses: ['integrate.api.nvidia.com'],
  sign,
  prefill: true,
  prefillWithTools: true,
  echoes: false,
  nudgeParameters: withoutThinking,
  prefillParameters: () => ({ continue_final_message: true, add_generation_prompt: false, echo: false }),
};
