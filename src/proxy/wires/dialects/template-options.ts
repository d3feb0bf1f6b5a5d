import { isObject } from '../../../lib/json.ts';
import type { Interrupted } from '../common/dialect.ts';

/** The client's options of the chat template, with thinking switched off: text has begun, and a thought would cut it. */
export const withoutThinking = ({ request }: Interrupted) => ({
  chat_template_kwargs: {
    ...(isObject(request.chat_template_kwargs) && request.chat_template_kwargs),
    enable_thinking: false,
  },
});
