import type { Payload } from '../../simulation/responses-told.ts';

/** Building blocks for the events of one attempt in OpenAI's form; every id contains `attempt`. */
export const responseOf = (attempt: number, status: string, more: object = {}) => ({
  id: `resp_${attempt}`,
  object: 'response',
  created_at: 1_700_000_000 + attempt,
  status,
  model: 'model',
  max_output_tokens: null,
  output: [],
  usage: null,
  ...more,
});

export const begin = (attempt: number): Payload[] => [
  { type: 'response.created', response: responseOf(attempt, 'in_progress') },
  { type: 'response.in_progress', response: responseOf(attempt, 'in_progress') },
];

const USAGE = {
  input_tokens: 5,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 9,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 14,
};

/** The end of an answer with these items. */
export const completed = (attempt: number, output: readonly object[]): Payload => ({
  type: 'response.completed',
  response: responseOf(attempt, 'completed', { output, usage: USAGE }),
});

/** The items that these events complete. */
export const itemsOf = (events: readonly Payload[]): object[] =>
  events.flatMap(({ type, item }) => (type === 'response.output_item.done' ? [item as object] : []));

/** A message in these pieces. */
export function message(
  id: string,
  output_index: number,
  pieces: readonly string[],
  more: object = {},
): Payload[] {
  const place = { item_id: id, output_index, content_index: 0 };
  const text = pieces.join('');
  const part = (said: string) => ({ type: 'output_text', annotations: [], logprobs: [], text: said });
  const item = { id, type: 'message', role: 'assistant', ...more };
  return [
    {
      type: 'response.output_item.added',
      output_index,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', ...place, part: part('') },
    ...pieces.map((delta) => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })),
    { type: 'response.output_text.done', ...place, text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part: part(text) },
    {
      type: 'response.output_item.done',
      output_index,
      item: { ...item, status: 'completed', content: [part(text)] },
    },
  ];
}

/** Thoughts with a summary in these pieces, or with encrypted content alone. */
export function reasoning(id: string, output_index: number, pieces: readonly string[]): Payload[] {
  const place = { item_id: id, output_index, summary_index: 0 };
  const text = pieces.join('');
  const part = { type: 'summary_text', text };
  const item = { id, type: 'reasoning', encrypted_content: `begun by ${id}` };
  const summary: Payload[] = [
    { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } },
    ...pieces.map((delta) => ({ type: 'response.reasoning_summary_text.delta', ...place, delta })),
    { type: 'response.reasoning_summary_text.done', ...place, text },
    { type: 'response.reasoning_summary_part.done', ...place, part },
  ];
  const isOpen = pieces.length > 0;
  return [
    { type: 'response.output_item.added', output_index, item: { ...item, summary: [] } },
    ...(isOpen ? summary : []),
    {
      type: 'response.output_item.done',
      output_index,
      item: { ...item, summary: isOpen ? [part] : [], encrypted_content: `thought by ${id}` },
    },
  ];
}

export function call(id: string, output_index: number, pieces: readonly string[]): Payload[] {
  const place = { item_id: `fc_${id}`, output_index };
  const item = { id: `fc_${id}`, type: 'function_call', call_id: `call_${id}`, name: 'forecast' };
  const text = pieces.join('');
  return [
    {
      type: 'response.output_item.added',
      output_index,
      item: { ...item, status: 'in_progress', arguments: '' },
    },
    ...pieces.map((delta) => ({ type: 'response.function_call_arguments.delta', ...place, delta })),
    { type: 'response.function_call_arguments.done', ...place, arguments: text },
    {
      type: 'response.output_item.done',
      output_index,
      item: { ...item, status: 'completed', arguments: text },
    },
  ];
}

/** A call with free text. */
export function customCall(id: string, output_index: number, pieces: readonly string[]): Payload[] {
  const place = { item_id: `ctc_${id}`, output_index };
  const item = { id: `ctc_${id}`, type: 'custom_tool_call', call_id: `call_${id}`, name: 'patch' };
  const text = pieces.join('');
  return [
    { type: 'response.output_item.added', output_index, item: { ...item, input: '' } },
    ...pieces.map((delta) => ({ type: 'response.custom_tool_call_input.delta', ...place, delta })),
    { type: 'response.custom_tool_call_input.done', ...place, input: text },
    { type: 'response.output_item.done', output_index, item: { ...item, input: text } },
  ];
}

/** A search that the provider runs itself. */
export function webSearch(id: string, output_index: number): Payload[] {
  const place = { item_id: id, output_index };
  const item = { id, type: 'web_search_call', action: { type: 'search', query: 'tides' } };
  return [
    { type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress' } },
    { type: 'response.web_search_call.in_progress', ...place },
    { type: 'response.web_search_call.searching', ...place },
    { type: 'response.web_search_call.completed', ...place },
    { type: 'response.output_item.done', output_index, item: { ...item, status: 'completed' } },
  ];
}
