import type { ChatRequest } from '../../src/proxy/wires/common/request.ts';
import type { MessagesRequest } from '../../src/proxy/wires/messages/request.ts';

/** The API requires a limit; no simulated answer comes near this one. */
const MAX_TOKENS = 1_000_000;

/** Translates a chat request to `/v1/messages`. */
export function messagesRequestOf(request: ChatRequest): MessagesRequest {
  const { messages, tools, max_tokens, stop, stream_options: _, ...rest } = request;
  const declared = tools?.map((tool) => ({
    name: tool.function?.name,
    input_schema: tool.function?.parameters,
  }));
  const stops = [stop ?? []].flat();
  return {
    ...rest,
    messages,
    max_tokens: max_tokens ?? MAX_TOKENS,
    ...(declared && { tools: declared }),
    ...(stops.length > 0 && { stop_sequences: stops }),
  };
}
