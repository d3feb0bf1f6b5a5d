import type { Configuration } from '../config/configuration.ts';
import { redacted } from '../config/redaction.ts';
import { tryCommand } from '../config/sample-requests.ts';
import { VERSION } from '../lib/version.ts';
import { fileStoreDirectory } from '../server/store-directory.ts';
import { type Paint, printable } from './terminal.ts';

/** Addresses of the open ports. */
interface Addresses {
  readonly api: string;
  readonly admin: string;
}

const NAME_WIDTH = 11;

/** One line for programs, printed once the replica listens. */
export const listeningLine = ({ api, admin }: Addresses): string =>
  `holdfast ${VERSION}: API on ${api}, admin on ${admin}\n`;

/** The same for people: addresses, upstreams, store and a sample request. */
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
