import { isDeepStrictEqual } from 'node:util';
import { mannerOf } from '../../../../src/proxy/wires/common/dialect.ts';
import { DIALECTS } from '../../../../src/proxy/wires/dialects/registry.ts';
import type { CompletionRequest } from '../../../provider/request.ts';
import type { Plan } from '../../../provider/script.ts';
import type { Fixture } from './fixtures/fixture.ts';

const CHAT_COMPLETIONS = '/v1/chat/completions';

/** How the provider of a fixture behaves, whatever it says; the base of a plan. */
export function mannersOf(fixture: Fixture): Omit<Plan, 'parts'> {
  const manner = mannerOf(DIALECTS[fixture.dialect], String(fixture.model ?? ''));
  const { accent, id, continuation, tool_shape, finish, dialect } = fixture;
  return {
    accent,
    prefill: (request, path) => isPrefill(fixture, request, path),
    ...(manner !== undefined && manner !== 'new_turn' && { prefilled: manner }),
    thinksOn: DIALECTS[dialect].continuesReasoning,
    ...(id !== undefined && { id }),
    ...(continuation && { continuation }),
    ...(tool_shape && { tool_shape }),
    ...(finish !== undefined && { finish }),
  };
}

/** A provider accepts a prefill only in its own form, and treats everything else as a closed turn. */
function isPrefill({ prefill }: Fixture, request: CompletionRequest, path: string): boolean {
  if (!prefill || path !== (prefill.path ?? CHAT_COMPLETIONS)) return false;
  // The reasoning before the cut isn't part of the form.
  const { reasoning_content: _, ...fields } = prefill.fields ?? {};
  const has = (value: object | undefined, wanted: object) =>
    isDeepStrictEqual({ ...value, ...wanted }, { ...value });
  return has(request.messages.at(-1), fields) && has(request, prefill.parameters ?? {});
}
