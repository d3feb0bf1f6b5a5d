import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import type { ChatRequest } from '../common/chat-request.ts';
import {
  checkModel,
  checkStop,
  checkStreamOptions,
  given,
  invalid,
  missing,
} from '../common/request-checks.ts';

/** What a run relies on; everything else is left to the provider to judge. */
export function checkChatRequest(fields: Fields): ChatRequest {
  const { messages, tools } = fields;
  checkModel(fields);
  if (messages === undefined) throw missing('messages', 'a list of at least one message');
  if (!Array.isArray(messages) || messages.length === 0)
    throw invalid('messages', 'a list of at least one message');
  for (const [index, message] of messages.entries()) {
    if (!isObject(message) || typeof message.role !== 'string') {
      throw invalid(`messages[${index}]`, 'an object with a role');
    }
  }
  checkStreamOptions(fields);
  if (given(tools) && !(Array.isArray(tools) && tools.every(isObject)))
    throw invalid('tools', 'a list of objects');
  checkStop(fields);
  return fields as unknown as ChatRequest;
}
