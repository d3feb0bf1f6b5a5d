import type { EventsMode } from '../../src/proxy/wires/common/wire.ts';
import type { Plan, ToolCall } from '../provider/script.ts';
import { TOOLS } from '../simulation/arbitraries.ts';
import type { SimulationOptions } from '../simulation/simulate.ts';

const forecast = (id: string, text: string): ToolCall => ({ id, name: 'forecast', arguments: text });
export const PARIS = forecast('call_a', '{"city":"Paris","days":3}');
export const PARIS_AGAIN = forecast('call_b', '{ "days": 3, "city": "Paris" }');
export const BREST = forecast('call_c', '{"city":"Brest","days":3}');
export const PLANS: Readonly<Record<string, Plan>> = {
  'one after the other': { parts: [{ tool: PARIS }, { tool: PARIS_AGAIN }, { tool: BREST }] },
  'at once': { parts: [{ tools: [PARIS, PARIS_AGAIN] }, { tool: BREST }] },
  'whole, with text between': {
    parts: [{ tool: PARIS }, { text: 'Once more.' }, { tool: PARIS_AGAIN }, { tool: BREST }],
    tool_shape: 'whole',
  },
  'at the end': { parts: [{ text: 'I look.' }, { tool: BREST }, { tool: PARIS }, { tool: PARIS_AGAIN }] },
};
const MODES = ['none', 'chunks', 'comments'] as const;
export const SCENES = Object.keys(PLANS).flatMap((name) => MODES.map((events) => [name, events] as const));

export const dropping = (events: EventsMode): SimulationOptions => ({
  events,
  request: { tools: TOOLS },
  recovery: { drop_repeated_calls: true },
});
