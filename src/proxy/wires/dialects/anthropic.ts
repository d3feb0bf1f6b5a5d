import { isObject } from '../../../lib/json.ts';
import { type Dialect, PLAIN } from '../common/dialect.ts';
import { claudeContinues } from './model-families.ts';

/** Its OpenAI-compatible endpoint. */
export const anthropic: Dialect = {
  ...PLAIN,
  name: 'anthropic',
  about: {
    speakers: 'Anthropic, OpenAI-compatible endpoint',
    models: ['claude-sonnet-4-5', 'claude-opus-4-6'],
    unverified:
      'Whether the endpoint has the rule of the Messages API: models that continue there are tried. That tools do no harm.',
  },
  addresses: ['api.anthropic.com'],
  // Names that say nothing are of models that are newer than the rule.
  prefill: (model) => (claudeContinues(model) ? undefined : false),
  prefillWithTools: true,
  echoes: false,
  // A thinking model wants a thinking block at the head of the message, which this endpoint never gave out.
  prefillParameters: ({ request: { thinking } }) =>
    isObject(thinking) ? { thinking: { type: 'disabled' } } : {},
};
