import { type Configuration, isKeyed } from './configuration.ts';

/** Placeholder for a model if the configuration names none. */
const SOME_MODEL = 'MODEL';
/** Placeholder for the run id in {@link resumeCommand}. */
export const RUN_PLACEHOLDER = '{run_id}';

/** A command that requests a short answer. `api`: the API's root, without `/v1`. */
export function tryCommand(api: string, configuration: Configuration): string {
  const model = configuration.routes.find((route) => !route.model.includes('*'))?.model ?? SOME_MODEL;
  const body = { model, stream: true, messages: [{ role: 'user', content: 'Hello' }] };
  return [
    `curl -N ${quoted(`${api}/v1/chat/completions`)} -H 'content-type: application/json'`,
    ...credential(configuration),
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(' ');
}

/** A command that reads a run from its first event and continues it if its replica is gone. */
export function resumeCommand(api: string, configuration: Configuration): string {
  const url = `${api}/holdfast/v1/runs/${RUN_PLACEHOLDER}/stream`;
  return [`curl -N ${quoted(url)}`, ...credential(configuration)].join(' ');
}

function credential({ clients, owner, upstreams }: Configuration): readonly string[] {
  const isNeeded =
    clients.length > 0 || owner.claim !== undefined || !Object.values(upstreams).every(isKeyed);
  return isNeeded ? [`-H "authorization: Bearer $HOLDFAST_API_KEY"`] : [];
}

/** Quotes one shell word. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
