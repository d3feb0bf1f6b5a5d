import type { IncomingHttpHeaders } from 'node:http';
import type { UpstreamConfiguration } from '../../../config/configuration.ts';
import { type Headers, revivedRequestHeaders } from '../../upstream/headers.ts';
import type { ModelCompression } from '../../upstream/route-table.ts';
import { chatWire } from '../../wires/chunks/chat-wire.ts';
import type { Run } from '../context/run.ts';

/** With the headers of the client's request as the model that summarises is to have them. */
export function compressionOfRun(
  settings: ModelCompression | undefined,
  headers: IncomingHttpHeaders,
): Pick<Run, 'compression'> {
  if (!settings) return {};
  const { target } = settings;
  return {
    compression: { ...settings, target: { ...target, headers: headersFor(target.upstream, headers) } },
  };
}

function headersFor(upstream: UpstreamConfiguration, headers: IncomingHttpHeaders): Headers {
  const sent = revivedRequestHeaders(headers, upstream, chatWire);
  // On the wire of the client its credential may be in another place than on the one of chat completions.
  const key = sent.authorization ?? (sent['x-api-key'] && `Bearer ${String(sent['x-api-key'])}`);
  return key ? { ...sent, authorization: key } : sent;
}
