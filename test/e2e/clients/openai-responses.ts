import OpenAI from 'openai';
import type {
  Response,
  ResponseOutputItem,
  ResponseReasoningItem,
} from 'openai/resources/responses/responses';
import { type Answer, API_KEY, type ChatClient, type Question, type Tool } from './chat-client.ts';
import { responseAnswer } from './response-answer.ts';

/** Retries are off, because recovery is Holdfast's job. */
const connect = (baseURL: string, fetch?: typeof globalThis.fetch) =>
  new OpenAI({ baseURL, apiKey: API_KEY, maxRetries: 0, fetch });

const requestOf = ({ model, content, tools, parameters }: Question) => ({
  model,
  input: content,
  ...(tools.length > 0 && { tools: responsesTools(tools) }),
  ...parameters,
});

/** The `tools` of a request, in the API's format. */
export const responsesTools = (tools: readonly Tool[]) =>
  tools.map(({ name, parameters }) => ({
    type: 'function' as const,
    name,
    parameters: { ...parameters },
    strict: true,
  }));

/** Cut reasoning isn't part of the response. */
const isCut = (item: ResponseOutputItem): item is ResponseReasoningItem =>
  item.type === 'reasoning' && item.status === 'incomplete';

/** The raw events; the last one contains the response. */
export function openaiResponses(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const client = connect(baseURL, fetch);
  return {
    name: 'openai, responses.create()',
    async ask(question): Promise<Answer> {
      let response: Response | undefined;
      const said = { text: '', reasoning: '', arguments: '' };
      const cut = new Set<string>();
      const thoughts: { id: string; text: string }[] = [];
      for await (const event of await client.responses.create({ ...requestOf(question), stream: true })) {
        if (event.type === 'response.output_text.delta') said.text += event.delta;
        if (event.type === 'response.reasoning_summary_text.delta')
          thoughts.push({ id: event.item_id, text: event.delta });
        if (event.type === 'response.output_item.done' && isCut(event.item)) cut.add(event.item.id);
        if (event.type === 'response.function_call_arguments.delta') said.arguments += event.delta;
        if (event.type === 'response.completed') response = event.response;
      }
      if (!response) throw new Error('the stream ended without a response');
      const answer = responseAnswer(response);
      said.reasoning = thoughts.map(({ id, text }) => (cut.has(id) ? '' : text)).join('');
      const called = answer.toolCalls.map((call) => JSON.stringify(call.arguments)).join('');
      if (said.text !== answer.text || said.reasoning !== answer.reasoning || said.arguments !== called)
        throw new Error(`what was said piece by piece is something else: ${JSON.stringify(said)}`);
      return answer;
    },
  };
}

/** The helper that assembles the response itself, and checks every event along the way. */
export function openaiResponsesHelper(baseURL: string, fetch?: typeof globalThis.fetch): ChatClient {
  const client = connect(baseURL, fetch);
  return {
    name: 'openai, responses.stream()',
    async ask(question): Promise<Answer> {
      const stream = client.responses.stream(requestOf(question));
      let text = '';
      stream.on('response.output_text.delta', ({ snapshot }) => {
        text = snapshot;
      });
      const response = await stream.finalResponse();
      const answer = responseAnswer(response);
      if (text !== answer.text) throw new Error(`the last text was ${text}`);
      if (response.output_text !== answer.text) throw new Error(`the text is ${response.output_text}`);
      return answer;
    },
  };
}
