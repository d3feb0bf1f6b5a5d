import type { ChatRequest } from '../../src/proxy/wires/common/request.ts';
import type { ResponsesRequest } from '../../src/proxy/wires/responses/request.ts';

/** Translates a chat request to `/v1/responses`. */
export function responsesRequestOf({ model, messages, tools, max_tokens }: ChatRequest): ResponsesRequest {
  const declared = tools?.map(({ function: tool }) => ({ type: 'function', ...tool }));
  return {
    model,
    input: messages,
    stream: true,
    ...(typeof max_tokens === 'number' && { max_output_tokens: max_tokens }),
    ...(declared && { tools: declared }),
  };
}
