import { isKeyed, keyPathOf } from '../config/configuration.ts';
import { isObject, parsedJson } from '../lib/json.ts';
import type { Target } from '../proxy/upstream/target.ts';
import { TransportFailure, upstreamUrl } from '../proxy/upstream/transport.ts';
import { chatWire } from '../proxy/wires/chunks/chat-wire.ts';
import type { Wire } from '../proxy/wires/common/wire.ts';
import { messagesWire } from '../proxy/wires/messages/wire.ts';
import { connectLimit_ms, type DoctorContext, hasKey, headersFor } from './doctor-context.ts';
import { bounded, type Finding, type Findings, reasonOf } from './finding.ts';

const ANSWER_MAX_MS = 15_000;
const BODY_MAX_BYTES = 8_388_608;
/** A `Date` header has whole seconds, and takes time to arrive. */
const SKEW_MAX_MS = 5000;
const SECOND_MS = 1000;
const UNAUTHORISED = 401;
const FORBIDDEN = 403;

interface Listed {
  readonly status: number;
  readonly date: string | undefined;
  /** Our clock in the middle of the request. */
  readonly ours_ms: number;
  /** How far `ours_ms` may be off. */
  readonly error_ms: number;
  readonly body: unknown;
}

/** Tests the key by asking for the upstream's models, which costs nothing. Returns their names, if the upstream lists them. */
export async function examineModelList(
  findings: Findings,
  context: DoctorContext,
  target: Target,
): Promise<readonly string[]> {
  let listed: Listed;
  try {
    listed = await bounded(ANSWER_MAX_MS, (signal) => ask(context, target, chatWire, signal));
    // A provider with a native messages API expects the key in another header.
    if (listed.status === UNAUTHORISED && hasKey(context, target)) {
      const native = await bounded(ANSWER_MAX_MS, (signal) => ask(context, target, messagesWire, signal));
      if (native.status === 200) listed = native;
    }
  } catch (error) {
    const reason = error instanceof TransportFailure ? error.code : reasonOf(error);
    findings.fail('credentials', `no answer to GET /models (${reason})`, 'check what listens at base_url.');
    return [];
  }
  examineCredentials(findings, context, target, listed);
  examineClock(findings, listed);
  return namesIn(listed.body);
}

async function ask(context: DoctorContext, target: Target, wire: Wire, signal: AbortSignal): Promise<Listed> {
  const asked_ms = Date.now();
  const { status, headers, body } = await context.transport.open({
    method: 'GET',
    url: upstreamUrl(target.upstream.base_url, '/models'),
    headers: headersFor(context, target, wire),
    query: target.upstream.query,
    signal,
    connect_ms: connectLimit_ms(context, target),
  });
  const error_ms = (Date.now() - asked_ms) / 2;
  const pieces: Buffer[] = [];
  let bytes = 0;
  await body.consume((piece) => {
    bytes += piece.length;
    if (bytes <= BODY_MAX_BYTES) pieces.push(piece);
    return undefined;
  });
  const date = typeof headers.date === 'string' ? headers.date : undefined;
  return {
    status,
    date,
    ours_ms: asked_ms + error_ms,
    error_ms,
    body: parsedJson(Buffer.concat(pieces).toString()),
  };
}

function examineCredentials(
  findings: Findings,
  context: DoctorContext,
  target: Target,
  { status, body }: Listed,
): Finding {
  const isRefused = status === UNAUTHORISED || status === FORBIDDEN;
  const figures = { status };
  if (status === 200 && isObject(body)) {
    const whose = isKeyed(target.upstream) ? 'the configured key' : "the client's key";
    const seen = hasKey(context, target)
      ? `the upstream accepts ${whose} for GET /models`
      : 'GET /models needs no key';
    return findings.ok('credentials', seen, figures);
  }
  if (isRefused && !hasKey(context, target))
    return findings.skip(
      'credentials',
      'the upstream requires a key and none is configured: clients send theirs',
      context.withheld
        ? 'with --model, name a model of the upstream that your key is for: no other upstream gets the key.'
        : 'set HOLDFAST_API_KEY or --key-file to test one.',
    );
  if (status === FORBIDDEN)
    return findings.warn(
      'credentials',
      "the key doesn't permit listing models (403)",
      'do nothing if the key permits what clients request; otherwise check its permissions.',
      figures,
    );
  if (isRefused)
    return findings.fail(
      'credentials',
      `the upstream refuses the key (${status})`,
      isKeyed(target.upstream)
        ? `check ${keyPathOf(target.name, target.upstream)}.`
        : "check the client's key in HOLDFAST_API_KEY or --key-file.",
      figures,
    );
  if (status >= 500)
    return findings.warn(
      'credentials',
      `the upstream answers GET /models with ${status}`,
      "check the provider's status.",
      figures,
    );
  return findings.skip(
    'credentials',
    `there's no list of models to test the key with (the upstream answers GET /models with ${status})`,
  );
}

/** Holdfast reads dates in `Retry-After` by our clock. */
function examineClock(findings: Findings, { date, ours_ms, error_ms }: Listed): Finding {
  const theirs_ms = Date.parse(date ?? '');
  if (Number.isNaN(theirs_ms)) return findings.skip('clock', 'the answer has no Date');
  // `Date` is cut to the second, so assuming the middle of that second keeps the error smallest.
  const skew_ms = Math.round(theirs_ms + SECOND_MS / 2 - ours_ms);
  const figures = { skew_ms };
  if (Math.abs(skew_ms) <= SKEW_MAX_MS + error_ms)
    return findings.ok('clock', 'its clock and ours agree to within a few seconds', figures);
  const seconds = Math.round(Math.abs(skew_ms) / SECOND_MS);
  return findings.warn(
    'clock',
    `its clock is ${seconds} s ${skew_ms < 0 ? 'behind' : 'ahead of'} ours`,
    "synchronise this machine's clock (chrony, NTP): Holdfast reads dates in Retry-After by it.",
    figures,
  );
}

function namesIn(body: unknown): string[] {
  const data = isObject(body) && Array.isArray(body.data) ? body.data : [];
  return data.flatMap((model) => (isObject(model) && typeof model.id === 'string' ? [model.id] : []));
}
