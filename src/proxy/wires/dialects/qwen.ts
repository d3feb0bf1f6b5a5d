import { type Dialect, PLAIN, type Prefill } from '../common/dialect.ts';

/** Thinking cannot be switched off in these, and partial mode is for answers without it. */
const ALWAYS_THINKS = /thinking|qwq|qvq/;

function continues(model: string): Prefill {
  const name = model.toLowerCase();
  if (ALWAYS_THINKS.test(name)) return false;
  return name.includes('qwen') ? true : undefined;
}

/** Partial mode, which does not go with thinking. */
export const qwen: Dialect = {
  ...PLAIN,
  name: 'qwen',
  about: {
    speakers: 'Alibaba Cloud Model Studio (DashScope)',
    models: ['qwen-plus', 'qwen3-235b-a22b-thinking-2507', 'deepseek-v3.2'],
    unverified:
      'Whether tools are still called after a prefix: with tools there is a nudge. Models other than Qwen are tried. Whether the prefix comes again: short ones are not sent, which would not tell.',
  },
  addresses: ['dashscope*.aliyuncs.com'],
  prefill: continues,
  assistantMessage: ({ text }) => ({ role: 'assistant', content: text, partial: true }),
  prefillParameters: () => ({ enable_thinking: false }),
};
