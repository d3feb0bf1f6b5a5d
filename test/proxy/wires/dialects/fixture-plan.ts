import { isDeepStrictEqual } from 'node:util';
import { mannerOf } from '../../../../src/proxy/wires/common/dialect.ts';
import { DIALECTS } from '../../../../src/proxy/wires/dialects/registry.ts';
import type { CompletionRequest } from '../../../provider/request.ts';
import type { Plan } from '../../../provider/script.ts';
import type { Fixture } from './fixtures/fixture.ts';

const CHAT_COMPLETIONS = '/v1/chat/completions';

/** What the provider of a fixture does whatever it says, for plans to be laid over. */
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

/** A provider continues in its own way what it was asked for, and takes everything else for a closed turn. */
function isPrefill({ prefill }: Fixture, request: CompletionRequest, path: string): boolean {
  if (!prefill || path !== (prefill.path ?? CHAT_COMPLETIONS)) return false;
  // What the answer was reasoned before it was cut is no matter of form.
  const { reasoning_content: _, ...fields } = prefill.fields ?? {};
  const has = (value: object | undefined, wanted: object) =>
    isDeepStrictEqual({ ...value, ...wanted }, { ...value });
  return has(request.messages.at(-1), fields) && has(request, prefill.parameters ?? {});
}
