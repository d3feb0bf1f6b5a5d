import { isObject } from '../../../src/lib/json.ts';
import { refused } from './refused.ts';

type Item = Readonly<Record<string, unknown>>;

/** The API refuses every other field. */
const FIELDS: ReadonlySet<string> = new Set([
  'model',
  'input',
  'instructions',
  'stream',
  'stream_options',
  'store',
  'background',
  'previous_response_id',
  'conversation',
  'prompt',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'max_output_tokens',
  'max_tool_calls',
  'temperature',
  'top_p',
  'top_logprobs',
  'reasoning',
  'text',
  'include',
  'metadata',
  // Sent by Codex.
  'client_metadata',
  'user',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'service_tier',
  'truncation',
  'access_programs',
  'context_management',
  'image',
  'moderation',
  'prompt_cache_options',
]);
const MESSAGE_FIELDS: ReadonlySet<string> = new Set(['type', 'role', 'content', 'id', 'status', 'phase']);
const OUTPUT_FIELDS: ReadonlySet<string> = new Set(['type', 'call_id', 'output', 'id', 'status']);
const ROLES: ReadonlySet<unknown> = new Set(['user', 'assistant', 'system', 'developer']);
const SAID_TO_MODEL = /^input_(text|image|file)$/;
const SAID_BY_MODEL = /^(output_text|refusal)$/;
/** Items that are only checked for a known type. */
const OTHERS =
  /^(reasoning|item_reference|compaction|(web_search|file_search|computer|code_interpreter|image_generation|local_shell|shell|apply_patch|mcp|tool_search)_call|(computer_call|local_shell_call|shell_call|apply_patch_call|tool_search)_output|mcp_(list_tools|approval_request|approval_response))$/;
const CALLS: Readonly<Record<string, string>> = { function_call: 'arguments', custom_tool_call: 'input' };

/** Throws what the API would refuse in a request's input: unknown fields or items, and results without their calls. */
export function checkInput(body: Item): void {
  const { input, instructions, previous_response_id, conversation } = body;
  const unknown = Object.keys(body).find((field) => !FIELDS.has(field));
  if (unknown !== undefined) throw refused(`Unknown parameter: '${unknown}'.`);
  if (instructions !== undefined && instructions !== null && typeof instructions !== 'string')
    throw refused("Invalid type for 'instructions': expected a string.");
  if (!Array.isArray(input)) return;
  const items = input as readonly unknown[];
  let keepsCalls = typeof previous_response_id === 'string' || (conversation ?? null) !== null;
  const calls = new Set<unknown>();
  const answered = new Set<unknown>();
  for (const [index, item] of items.entries()) {
    const place = `input[${index}]`;
    if (!isObject(item)) throw refused(`Invalid type for '${place}': expected an object.`);
    checkItem(item, place);
    const { type, call_id } = item;
    if (type === 'item_reference') keepsCalls = true;
    if (String(type) in CALLS) calls.add(call_id);
    if (!isResult(item)) continue;
    if (!calls.has(call_id) && !keepsCalls)
      throw refused(`No tool call found for function call output with call_id ${call_id}.`);
    if (answered.has(call_id)) throw refused(`Duplicate tool output for ${call_id}.`);
    answered.add(call_id);
  }
  for (const id of calls)
    if (!answered.has(id)) throw refused(`No tool output found for function call ${String(id)}.`);
}

const isResult = ({ type }: Item): boolean =>
  type === 'function_call_output' || type === 'custom_tool_call_output';

function checkItem(item: Item, place: string): void {
  const { type = 'message', role, content, call_id, output } = item;
  if (type === 'message') {
    if (!ROLES.has(role)) throw refused(`Invalid value: '${role}' at '${place}.role'.`);
    refuseUnknown(item, MESSAGE_FIELDS, place);
    checkParts(content, role === 'assistant' ? SAID_BY_MODEL : SAID_TO_MODEL, `${place}.content`);
  } else if (String(type) in CALLS) {
    const said = item[CALLS[String(type)] ?? ''];
    if (typeof call_id !== 'string' || typeof item.name !== 'string' || typeof said !== 'string')
      throw refused(`Missing required parameter of '${place}'.`);
  } else if (isResult(item)) {
    if (typeof call_id !== 'string') throw refused(`Missing required parameter: '${place}.call_id'.`);
    refuseUnknown(item, OUTPUT_FIELDS, place);
    checkParts(output, SAID_TO_MODEL, `${place}.output`);
  } else if (!OTHERS.test(String(type)))
    throw refused(`Invalid value: '${String(type)}' at '${place}.type'.`);
}

function checkParts(content: unknown, known: RegExp, place: string): void {
  if (typeof content === 'string') return;
  if (!Array.isArray(content)) throw refused(`Invalid type for '${place}'.`);
  for (const part of content as readonly unknown[])
    if (!isObject(part) || !known.test(String(part.type))) throw refused(`Invalid part in '${place}'.`);
}

function refuseUnknown(item: Item, fields: ReadonlySet<string>, place: string): void {
  const unknown = Object.keys(item).find((field) => !fields.has(field));
  if (unknown !== undefined) throw refused(`Unknown parameter: '${place}.${unknown}'.`);
}
