import { isObject } from '../../../src/lib/json.ts';
import { refused } from './refused.ts';

type Block = Readonly<Record<string, unknown>>;

interface Turn {
  readonly role: 'user' | 'assistant';
  readonly blocks: readonly Block[];
}

const CACHED_MAX = 4;
const TEXT_FIELDS: ReadonlySet<string> = new Set(['type', 'text', 'cache_control', 'citations']);
const USER_BLOCKS = /^(text|image|document|search_result|tool_result)$/;
/** Tools that the provider runs have their results in the same turn. */
const ASSISTANT_BLOCKS =
  /^(text|thinking|redacted_thinking|tool_use|server_tool_use|(?!tool_result$).+_tool_result)$/;
const RESULT_BLOCKS = /^(text|image|document|search_result)$/;

interface Conversation {
  readonly system?: unknown;
  readonly messages: readonly unknown[];
}

/** Throws what the API would refuse in a conversation: bad roles, bad blocks, and results without their calls. */
export function checkConversation({ system, messages }: Conversation): void {
  const instructions = typeof system === 'string' ? [] : (system ?? []);
  if (!Array.isArray(instructions)) throw refused('system: Input should be a valid list');
  for (const block of instructions as readonly Block[]) checkBlock(block, /^text$/, 'system');
  const turns: Turn[] = [];
  for (const [index, message] of messages.entries()) {
    const { role, blocks } = turnOf(message, index, index === messages.length - 1);
    // Consecutive messages of the same role form one turn.
    const last = turns.at(-1);
    if (last?.role === role) turns[turns.length - 1] = { role, blocks: [...last.blocks, ...blocks] };
    else turns.push({ role, blocks });
  }
  if (turns[0]?.role !== 'user') throw refused('messages: first message must use the "user" role');
  for (const [index, turn] of turns.entries()) checkResults(turn, turns[index - 1]);
  const cached = [...instructions, ...turns.flatMap(({ blocks }) => blocks)].filter(
    (block: Block) => block.cache_control !== undefined,
  );
  if (cached.length > CACHED_MAX)
    throw refused(`A maximum of ${CACHED_MAX} blocks with cache_control may be provided`);
}

function turnOf(message: unknown, index: number, isLast: boolean): Turn {
  const place = `messages.${index}`;
  if (!isObject(message)) throw refused(`${place}: Input should be an object`);
  const { content } = message;
  // With a beta header, Claude Code sends instructions between turns. They count as the user's, and no conversation
  // begins with them.
  const role = message.role === 'system' && index > 0 ? 'user' : message.role;
  if (role !== 'user' && role !== 'assistant')
    throw refused(`${place}: Unexpected role ${JSON.stringify(role)}`);
  const isEmpty = content === '' || (Array.isArray(content) && content.length === 0);
  if (isEmpty && !(isLast && role === 'assistant')) throw refused(`${place}: must have non-empty content`);
  if (typeof content === 'string') return { role, blocks: [{ type: 'text', text: content }] };
  if (!Array.isArray(content))
    throw refused(`${place}.content: Input should be a string or a list of blocks`);
  const blocks = content as readonly Block[];
  for (const block of blocks) checkBlock(block, role === 'user' ? USER_BLOCKS : ASSISTANT_BLOCKS, place);
  return { role, blocks };
}

function checkBlock(block: unknown, known: RegExp, place: string): void {
  if (!isObject(block)) throw refused(`${place}: Input should be an object`);
  const { type } = block;
  if (!known.test(String(type))) throw refused(`${place}: Input tag ${JSON.stringify(type)} is not expected`);
  if (type === 'text') {
    if (typeof block.text !== 'string' || block.text === '')
      throw refused(`${place}: text content blocks must be non-empty`);
    const extra = Object.keys(block).find((field) => !TEXT_FIELDS.has(field));
    if (extra !== undefined) throw refused(`${place}.${extra}: Extra inputs are not permitted`);
  }
  if (type === 'tool_use' && !(typeof block.id === 'string' && isObject(block.input)))
    throw refused(`${place}: tool_use.input: Input should be an object`);
  if (type !== 'tool_result') return;
  const { content = '' } = block;
  for (const part of typeof content === 'string' ? [] : (content as readonly unknown[]))
    checkBlock(part, RESULT_BLOCKS, place);
}

/** The next turn must start with a result for every call, and have no other results. */
function checkResults(turn: Turn, before: Turn | undefined): void {
  const results = turn.blocks
    .filter(({ type }) => type === 'tool_result')
    .map(({ tool_use_id }) => tool_use_id);
  const calls = (before?.blocks ?? []).filter(({ type }) => type === 'tool_use').map(({ id }) => id);
  const unexpected = results.find((id) => !calls.includes(id));
  if (unexpected !== undefined)
    throw refused(`unexpected tool_use_id ${unexpected} found in tool_result blocks`);
  const missing = calls.find((id) => !results.includes(id));
  if (missing !== undefined)
    throw refused(`tool_use ${missing} was found without a tool_result block after it`);
  if (new Set(results).size < results.length) throw refused('each tool_use must have a single result');
  if (turn.blocks.slice(0, results.length).some(({ type }) => type !== 'tool_result'))
    throw refused('tool_result blocks must come first');
}
