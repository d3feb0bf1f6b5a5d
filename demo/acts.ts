import { ANSWER } from '../src/demo/answer.ts';
import type { Fault } from '../test/provider/fault.ts';
import type { Plan, ToolCall } from '../test/provider/script.ts';

/** One question, the provider's answer to it, and the faults that interrupt the answer. */
export interface Act {
  /** Name of the requested model. The provider uses it to look up its script. */
  readonly model: string;
  readonly title: string;
  readonly question: string;
  readonly script: Plan & { readonly faults: readonly Fault[] };
  /** Kills the replica that delivers the answer once this many characters were shown. */
  readonly killed_at?: number;
}

/** About the pace at which models answer. */
const TOKEN_MS = 25;

const KELP = `${ANSWER} What the surge does break off is not lost either: torn blades drift ashore and feed whatever \
lives on the beach, while the holdfast they came from grows new ones.`;

const SURGE = `Surge is the back-and-forth of water above the sea floor as waves pass over it. It is strongest in \
the shallows, where one wave can move everything that is not attached by several metres, and then carry it back.`;

const FOREST = `Kelp grows where the water is cold, clear and never still: along the coasts of Norway and Brittany, of \
California, Chile and Tasmania. It needs rock to hold on to, light to live by and surge to bring it food, so its forests \
follow the shore in a narrow band, rarely deeper than thirty metres.`;

const call = (id: string, name: string, args: object): ToolCall => ({
  id,
  name,
  arguments: JSON.stringify(args),
});

export const ACTS: readonly Act[] = [
  {
    model: 'demo-text',
    title: 'One answer, cut three times: TCP reset, silence, HTTP/2 GOAWAY',
    question: 'What is a holdfast?',
    script: {
      parts: [{ text: KELP }],
      // Each fault strikes in the middle of a word.
      faults: [
        { kind: 'reset', at: { event: 33 } },
        { kind: 'silence', at: { event: 38 } },
        { kind: 'goaway_0_close', at: { event: 59 } },
      ],
      delay_ms: TOKEN_MS,
    },
  },
  {
    model: 'demo-error',
    title: 'A 503 in the middle of the stream',
    question: 'What is surge?',
    script: {
      parts: [{ text: SURGE }],
      faults: [{ kind: 'error_gemini', at: { event: 31 } }],
      delay_ms: TOKEN_MS,
    },
  },
  {
    model: 'demo-tool',
    title: 'A cut inside the arguments of a tool call',
    question: 'When is low water in Roscoff?',
    script: {
      parts: [
        { text: 'I will look up the tides for Roscoff.' },
        { tool: call('call_tides', 'get_tides', { port: 'Roscoff', date: '2026-08-12', unit: 'metre' }) },
      ],
      faults: [{ kind: 'h2_rst', at: { event: 19 } }],
      delay_ms: TOKEN_MS,
    },
  },
  {
    model: 'demo-parallel',
    title: 'Two parallel tool calls, the second one cut',
    question: 'Can I dive in Brest tomorrow?',
    script: {
      parts: [
        { text: 'Let me check the tides and the swell.' },
        {
          tools: [
            call('call_tides', 'get_tides', { port: 'Brest', date: '2026-08-12', unit: 'metre' }),
            call('call_swell', 'get_swell', { latitude: 48.39, longitude: -4.49, hours: 48, model: 'wave' }),
          ],
        },
      ],
      faults: [{ kind: 'clean_eof', at: { event: 34 } }],
      delay_ms: TOKEN_MS,
    },
  },
  {
    model: 'demo-replica',
    title: 'Two replicas; the one that delivers the answer is killed',
    question: 'Where does kelp grow?',
    script: { parts: [{ text: FOREST }], faults: [], delay_ms: TOKEN_MS },
    killed_at: 150,
  },
];

const tool = (name: string, properties: Record<string, { type: string }>) => ({
  type: 'function' as const,
  function: {
    name,
    parameters: {
      type: 'object',
      properties,
      required: Object.keys(properties),
      additionalProperties: false,
    },
  },
});

/** Declared in every request, because their schemas prove whether the arguments are complete. */
export const TOOLS = [
  tool('get_tides', { port: { type: 'string' }, date: { type: 'string' }, unit: { type: 'string' } }),
  tool('get_swell', {
    latitude: { type: 'number' },
    longitude: { type: 'number' },
    hours: { type: 'integer' },
    model: { type: 'string' },
  }),
];
