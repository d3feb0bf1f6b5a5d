import { type Configuration, isKeyed } from '../config/configuration.ts';
import { redacted } from '../config/redaction.ts';
import { VERSION } from '../lib/version.ts';
import { fileStoreDirectory } from '../server/store-directory.ts';
import { type Paint, printable } from './terminal.ts';

/** Of the ports that are open. */
interface Addresses {
  readonly api: string;
  readonly admin: string;
}

const NAME_WIDTH = 11;
/** Stands for a model where the configuration names none. */
const SOME_MODEL = 'MODEL';

/** What a replica says on one line when it listens. */
export const listeningLine = ({ api, admin }: Addresses): string =>
  `holdfast ${VERSION}: API on ${api}, admin on ${admin}\n`;

/** The same for people: what it serves from where, and a request to try it with. */
export function banner(addresses: Addresses, configuration: Configuration, paint: Paint): string {
  const { api, admin } = addresses;
  const rows = [
    ['API', `${api}/v1`],
    ['Admin', `${admin}/metrics`],
    ['Status', `${admin}/`],
    ['Upstreams', Object.entries(configuration.upstreams).map(upstreamText).join(', ')],
    ['Store', storeText(redacted(configuration).checkpoint.store)],
  ] as const;
  return [
    '',
    paint(`holdfast ${VERSION}`, 'bold'),
    '',
    ...rows.map(([name, value]) => `  ${paint(name.padEnd(NAME_WIDTH), 'dim')}${printable(value)}`),
    '',
    `  ${printable(tryCommand(api, configuration))}`,
    '',
    '',
  ].join('\n');
}

const upstreamText = ([name, { base_url }]: [string, { readonly base_url: string }]): string =>
  `${name} (${new URL(base_url).host})`;

function storeText(store: string): string {
  if (store === 'memory') return 'memory: what it has is gone when the process ends';
  return fileStoreDirectory(store) ?? store;
}

/** A command that asks for a short answer. */
export function tryCommand(api: string, { clients, owner, routes, upstreams }: Configuration): string {
  const model = routes.find((route) => !route.model.includes('*'))?.model ?? SOME_MODEL;
  const body = { model, stream: true, messages: [{ role: 'user', content: 'Hello' }] };
  const needsKey =
    clients.length > 0 || owner.claim !== undefined || !Object.values(upstreams).every(isKeyed);
  return [
    `curl -N ${quoted(`${api}/v1/chat/completions`)} -H 'content-type: application/json'`,
    ...(needsKey ? [`-H "authorization: Bearer $HOLDFAST_API_KEY"`] : []),
    `-d ${quoted(JSON.stringify(body))}`,
  ].join(' ');
}

/** One word of a shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
