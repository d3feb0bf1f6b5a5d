import fc from 'fast-check';
import type { ToolDefinition } from '../../src/proxy/wires/common/request.ts';
import type { Fault, Position } from '../provider/fault.ts';
import type { Chunking, Continuation, Part, Plan, ToolCall, ToolShape } from '../provider/script.ts';

/**
 * No text uses a word twice, and no word has the same syllable twice in a row. Otherwise a continuation could repeat by
 * chance what a restart repeats on purpose.
 */
const SYLLABLES = ['bra', 'ne', 'ki', 'lo', 'tum', 'sa', 'ver', 'di', 'que', 'ho', 'émi', '北', '🙂', 'zu'];
const SEPARATORS = [' ', ' ', ' ', ' ', ', ', '. ', '\n', '\n\n', ' — ', '\n- '];

function wordOf(number: number): string {
  let word = '';
  let last = -1;
  for (let rest = number + 17; rest > 0; rest = Math.floor(rest / SYLLABLES.length)) {
    const digit = rest % SYLLABLES.length;
    last = digit === last ? (digit + 1) % SYLLABLES.length : digit;
    word += SYLLABLES[last];
  }
  return word;
}

/** Text that begins with the word number `first`, one word per separator. Texts of one answer share no words. */
function textOf(first: number, separators: readonly string[]): string {
  return separators.map((separator, index) => wordOf(first + index) + separator).join('');
}

const separators = (maxLength: number) =>
  fc.array(fc.constantFrom(...SEPARATORS), { minLength: 1, maxLength });

const toolArguments = fc.oneof(
  fc.constant(''),
  fc.constant('{}'),
  fc
    .record({ city: fc.constantFrom('Paris', 'São Paulo', '"quoted" {brace}'), days: fc.nat(9) })
    .map((value) => JSON.stringify(value)),
  fc.array(fc.nat(9), { maxLength: 4 }).map((list) => JSON.stringify({ list, nested: { deep: { list } } })),
);

interface Draft {
  readonly kind: 'text' | 'reasoning' | 'tool' | 'tools' | 'whitespace';
  readonly separators: readonly string[];
  readonly arguments: readonly [string, string];
  readonly noArguments: boolean;
}

const drafts: fc.Arbitrary<Draft> = fc.record({
  kind: fc.constantFrom('text', 'text', 'reasoning', 'tool', 'tool', 'tools', 'whitespace'),
  separators: separators(24),
  arguments: fc.tuple(toolArguments, toolArguments),
  noArguments: fc.boolean(),
});

/** The tools that the scripts call. */
export const TOOLS: readonly ToolDefinition[] = [
  { type: 'function', function: { name: 'now', parameters: { type: 'object', properties: {} } } },
  {
    type: 'function',
    function: {
      name: 'forecast',
      parameters: {
        type: 'object',
        properties: {
          city: { type: 'string' },
          days: { type: 'integer' },
          list: { type: 'array' },
          nested: {},
        },
      },
    },
  },
];

/** Text, reasoning and up to three tool calls, in any order. */
const parts: fc.Arbitrary<Part[]> = fc.array(drafts, { minLength: 1, maxLength: 5 }).map((list) => {
  let words = 0;
  let calls = 0;
  const call = (text: string, noArguments: boolean): ToolCall => {
    calls++;
    const name = noArguments && (text === '' || text === '{}') ? 'now' : 'forecast';
    return { id: `call_${'abc'[calls - 1]}`, name, arguments: text };
  };
  return list.flatMap((draft): Part[] => {
    const text = textOf(words, draft.separators);
    words += draft.separators.length;
    if (draft.kind === 'reasoning') return [{ reasoning: text }];
    if (draft.kind === 'whitespace') return [{ text: '\n\n' }];
    if (draft.kind === 'tool' && calls < 3) return [{ tool: call(draft.arguments[0], draft.noArguments) }];
    if (draft.kind === 'tools' && calls < 2)
      return [
        { tools: [call(draft.arguments[0], draft.noArguments), call(draft.arguments[1], draft.noArguments)] },
      ];
    return [{ text }];
  });
});

export const CONTINUATIONS: readonly Continuation[] = [
  'obedient',
  'straight_on',
  'repeats_tail',
  'restarts',
  'preamble',
  'loses_whitespace',
  'echoes_prefix',
  'repeats_word',
  'prose_instead_of_tool',
  'rejects_prefill',
  'ignores_prefill',
];

export function plans(): fc.Arbitrary<Plan> {
  return fc.record(
    {
      parts,
      chunk: fc.constantFrom<Chunking>('token', 'token', 1, 9, 'part'),
      tool_shape: fc.constantFrom<ToolShape>(
        'openai',
        'openai',
        'whole',
        'no_index',
        'repeated_index',
        'id_repeated',
      ),
      continuation: fc.constantFrom(...CONTINUATIONS),
      rethinks: fc.boolean(),
      usage: fc.constantFrom('final', 'finish_chunk'),
    },
    { requiredKeys: ['parts', 'chunk', 'tool_shape', 'continuation'] },
  );
}

const FAULT_MAKERS: Readonly<Record<string, (at: Position) => Fault>> = {
  reset: (at) => ({ kind: 'reset', at }),
  fin_in_chunk: (at) => ({ kind: 'fin_in_chunk', at }),
  clean_eof: (at) => ({ kind: 'clean_eof', at }),
  done_without_finish: (at) => ({ kind: 'done_without_finish', at }),
  h2_rst: (at) => ({ kind: 'h2_rst', at }),
  goaway_0_close: (at) => ({ kind: 'goaway_0_close', at }),
  goaway_error: (at) => ({ kind: 'goaway_error', at }),
  goaway_graceful: (at) => ({ kind: 'goaway_graceful', at }),
  tls_cut: (at) => ({ kind: 'tls_cut', at }),
  silence: (at) => ({ kind: 'silence', at }),
  comments: (at) => ({ kind: 'comments', at, every_ms: 40_000 }),
  pings: (at) => ({ kind: 'pings', at, every_ms: 40_000 }),
  ping_events: (at) => ({ kind: 'pings', at, every_ms: 40_000, shape: 'event' }),
  error_openai: (at) => ({ kind: 'error_openai', at }),
  error_openrouter: (at) => ({ kind: 'error_openrouter', at }),
  error_vllm: (at) => ({ kind: 'error_vllm', at }),
  error_tgi: (at) => ({ kind: 'error_tgi', at }),
  error_ollama: (at) => ({ kind: 'error_ollama', at }),
  error_gemini: (at) => ({ kind: 'error_gemini', at }),
  error_anthropic: (at) => ({ kind: 'error_anthropic', at }),
  error_string: (at) => ({ kind: 'error_string', at }),
  error_rate_limited: (at) => ({ kind: 'error_rate_limited', at, retry_after_s: 2 }),
  error_quota: (at) => ({ kind: 'error_quota', at }),
  finish_insufficient_system_resource: (at) => ({ kind: 'finish_insufficient_system_resource', at }),
  finish_abort: (at) => ({ kind: 'finish_abort', at }),
  finish_overloaded_error: (at) => ({ kind: 'finish_overloaded_error', at }),
  malformed_event: (at) => ({ kind: 'malformed_event', at }),
  status_503: () => ({ kind: 'status', status: 503, headers: { 'retry-after': '1' } }),
  json_200: () => ({ kind: 'json_200' }),
  html_200: () => ({ kind: 'html_200' }),
};

export const FAULT_KINDS: readonly string[] = Object.keys(FAULT_MAKERS);

export function faultOf(kind: string, at: Position): Fault {
  const make = FAULT_MAKERS[kind];
  if (!make) throw new RangeError(`no fault is called ${kind}`);
  return make(at);
}

export const positions: fc.Arbitrary<Position> = fc.oneof(
  // Most answers end before the later positions.
  fc.nat(12).map((event): Position => ({ event })),
  fc.nat(60).map((event): Position => ({ event })),
  fc.nat(2500).map((byte): Position => ({ byte })),
  fc.nat(12_000).map((byte): Position => ({ byte })),
  fc.constant<Position>({ after_finish: true }),
);

export const faults = (): fc.Arbitrary<Fault> =>
  fc.tuple(fc.constantFrom(...FAULT_KINDS), positions).map(([kind, at]) => faultOf(kind, at));
