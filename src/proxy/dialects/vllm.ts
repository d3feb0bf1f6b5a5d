import { type Dialect, PLAIN } from './dialect.ts';

/** Both flags are needed: with the default `add_generation_prompt` the request is refused. */
export const vllm: Dialect = {
  ...PLAIN,
  name: 'vllm',
  prefill: true,
  prefillWithTools: true,
  prefillParameters: { continue_final_message: true, add_generation_prompt: false, echo: false },
};
