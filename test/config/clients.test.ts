import { expect, it } from 'vitest';
import { completeConfiguration } from '../../src/config/load.ts';
import { ConfigurationError } from '../../src/config/problem.ts';
import { redacted, redactor } from '../../src/config/redaction.ts';
import { doubts } from '../../src/config/references.ts';

const TOKEN = 'hf-0123456789abcdef';
const OTHER = 'hf-fedcba9876543210';
const KEYED = { base_url: 'https://llm.example.com/v1', api_key: 'sk-of-the-operator' };

const treeWith = (clients: unknown, more: Record<string, unknown> = {}) => ({
  upstreams: { main: KEYED },
  routes: [
    { model: 'gpt-*', targets: [{ upstream: 'main' }] },
    { model: '*', targets: [{ upstream: 'main' }] },
  ],
  clients,
  ...more,
});

function problemsOf(tree: unknown): string {
  try {
    completeConfiguration(tree);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.message;
    throw error;
  }
  throw new Error('the configuration is valid');
}

it('clients have a name and a token, and may have routes and a number of runs', () => {
  const clients = [
    { name: 'chat-ui', token: TOKEN },
    { name: 'batch', token: OTHER, routes: ['gpt-*'], runs: 2 },
  ];
  expect(completeConfiguration(treeWith(clients)).clients).toEqual(clients);
  expect(completeConfiguration(treeWith([])).clients).toEqual([]);
});

it.each([
  ['no name', { token: TOKEN }, 'clients[0].name: is required.'],
  ['no token', { name: 'one' }, 'clients[0].token: is required.'],
  [
    'a name that no metric could have',
    { name: 'a b', token: TOKEN },
    'clients[0].name: must start with a letter',
  ],
  ['a token that can be guessed', { name: 'one', token: 'short' }, 'clients[0].token: must have at least 16'],
  [
    'a token with a line break',
    { name: 'one', token: `${TOKEN}\n` },
    'clients[0].token: must be of visible ASCII',
  ],
  [
    'a token with a space',
    { name: 'one', token: `Bearer ${TOKEN}` },
    'clients[0].token: must be of visible ASCII',
  ],
  ['a token that is a number', { name: 'one', token: 12345678901234 }, 'clients[0].token: must be a string.'],
  ['the key itself', { name: 'one', token: KEYED.api_key }, 'clients[0].token: is upstreams.main.api_key'],
  [
    'no route of that name',
    { name: 'one', token: TOKEN, routes: ['gpt*'] },
    'clients[0].routes[0]: no route has the model "gpt*". Did you mean "gpt-*"?',
  ],
  [
    'no route at all',
    { name: 'one', token: TOKEN, routes: [] },
    'clients[0].routes: must have at least 1 entry',
  ],
  ['no runs at all', { name: 'one', token: TOKEN, runs: 0 }, 'clients[0].runs: must be at least 1'],
])('%s is a fault that names the field, and never the token', (_, client, fault) => {
  const problems = problemsOf(treeWith([client]));
  expect(problems).toContain(fault);
  for (const secret of [TOKEN, KEYED.api_key, '12345678901234', '"short"'])
    expect(problems).not.toContain(secret);
});

it('two clients share neither a name nor a token', () => {
  const problems = problemsOf(
    treeWith([
      { name: 'one', token: TOKEN },
      { name: 'one', token: OTHER },
      { name: 'two', token: TOKEN },
    ]),
  );
  expect(problems.split('\n')).toEqual([
    'clients[1].name: is the name of clients[0], too.',
    'clients[2].token: is the token of clients[0], too.',
  ]);
});

it('tokens are never printed', () => {
  const configuration = completeConfiguration(treeWith([{ name: 'one', token: TOKEN }]));
  expect(redacted(configuration).clients).toEqual([{ name: 'one', token: '[redacted]' }]);
  expect(redactor(configuration, undefined)(`sent ${TOKEN}`)).toBe('sent [redacted]');
});

it('a key that everyone can spend is warned of, unless only this machine can ask or clients are named', () => {
  const doubtsOf = (host: string, clients: unknown, upstream: object = KEYED) =>
    doubts(completeConfiguration({ upstreams: { main: upstream }, listen: { host }, clients })).join('\n');
  const clients = [{ name: 'one', token: TOKEN }];
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'gateway'])
    expect(doubtsOf(host, [])).toBe(
      `listen.host: everyone who reaches ${host} can spend upstreams.main.api_key; name the clients that may under clients, or listen on 127.0.0.1.`,
    );
  for (const host of ['127.0.0.1', 'localhost', '::1']) expect(doubtsOf(host, [])).toBe('');
  expect(doubtsOf('0.0.0.0', clients)).toBe('');
  expect(doubtsOf('0.0.0.0', [], { base_url: KEYED.base_url })).toBe('');
});

it('an upstream that is asked without a token is warned of', () => {
  const open = { base_url: 'http://localhost:8000/v1' };
  const configuration = completeConfiguration({
    upstreams: { main: KEYED, open },
    clients: [{ name: 'one', token: TOKEN }],
  });
  expect(doubts(configuration)).toEqual([
    'upstreams.open: has no api_key, so requests for it need no token of a client; where the server asks for no key, configure any.',
  ]);
});

it.each([
  'Authorization',
  'x-api-key',
  'X-Goog-Api-Key',
  'cookie',
  'host',
  'content-type',
  'Holdfast-Thread',
  'via',
])('a header that means something else (%s) cannot name the owner', (header) => {
  const problems = problemsOf({ upstreams: { main: KEYED }, owner: { header } });
  expect(problems).toBe(
    'owner.header: means something else; have the front set one of its own, like x-user-id.',
  );
});

it('one that names the owner is warned of where everyone could send it', () => {
  const doubtsOf = (host: string, clients: unknown = []) =>
    doubts(
      completeConfiguration({
        upstreams: { main: { base_url: KEYED.base_url, api_key: KEYED.api_key } },
        owner: { header: 'X-User-Id' },
        listen: { host },
        clients,
      }),
    ).filter((doubt) => doubt.startsWith('owner.'));
  expect(doubtsOf('0.0.0.0')).toEqual([
    'owner.header: everyone who reaches 0.0.0.0 can name an owner, and have the runs of that one; have only the front reach it, or give the front a token under clients.',
  ]);
  expect(doubtsOf('127.0.0.1')).toEqual([]);
  expect(doubtsOf('0.0.0.0', [{ name: 'front', token: TOKEN }])).toEqual([]);
});

const CLAIM = { claim: 'sub', jwks_url: 'https://login.example.com/keys' };

const NO_URL =
  'owner.jwks_url: must be an https: URL, like https://login.example.com/.well-known/jwks.json; http: only for an address of this machine.';

it.each(['https://login.example.com/keys?p=1', 'http://127.0.0.1:9/keys', 'http://localhost/keys'])(
  'keys for the tokens that name the owner may be at %s',
  (jwks_url) => {
    const owner = { ...CLAIM, jwks_url };
    expect(completeConfiguration({ upstreams: { main: KEYED }, owner }).owner).toEqual(owner);
  },
);

it.each<[object, string]>([
  [
    { claim: 'sub' },
    'owner.jwks_url: is missing; owner.claim needs the URL of the keys that the tokens are signed with.',
  ],
  [{ ...CLAIM, jwks_url: 'keys' }, NO_URL],
  [{ ...CLAIM, jwks_url: 'http://login.example.com/keys' }, NO_URL],
  [{ ...CLAIM, jwks_url: 'file:///keys' }, NO_URL],
  [
    { ...CLAIM, jwks_url: 'https://me:word@login.example.com/keys' },
    'owner.jwks_url: must not hold credentials; public keys need none.',
  ],
  [
    { ...CLAIM, header: 'x-user-id' },
    'owner.claim: cannot be used with owner.header; a run has one owner, so remove one of them.',
  ],
  [{ jwks_url: CLAIM.jwks_url }, 'owner.jwks_url: says nothing without owner.claim; set that, too.'],
  [{ issuer: 'me' }, 'owner.issuer: says nothing without owner.claim; set that, too.'],
  [{ audience: 'me' }, 'owner.audience: says nothing without owner.claim; set that, too.'],
])('a claim that names the owner: %j', (owner, problems) => {
  expect(problemsOf({ upstreams: { main: KEYED }, owner })).toBe(problems);
});

it('a claim is not for clients with tokens of the configuration', () => {
  const clients = [{ name: 'one', token: TOKEN }];
  expect(problemsOf({ upstreams: { main: KEYED }, owner: CLAIM, clients })).toBe(
    'owner.claim: cannot be used with clients, whose tokens come where the JWT would; remove one of them.',
  );
});

it('a claim of any token of its keys is warned of, and one of some is what everyone needs', () => {
  const doubtsOf = (owner: object) =>
    doubts(completeConfiguration({ upstreams: { main: KEYED }, owner, listen: { host: '0.0.0.0' } }));
  expect(doubtsOf(CLAIM)).toEqual([
    'owner.claim: every token that is signed with the keys of owner.jwks_url is taken, also those for other services; set owner.issuer and owner.audience.',
  ]);
  expect(doubtsOf({ ...CLAIM, audience: 'holdfast' })).toEqual([]);
  expect(doubtsOf({ ...CLAIM, issuer: 'https://login.example.com' })).toEqual([]);
});

it('a key in a header of an upstream is one, too', () => {
  const upstreams = { main: { base_url: KEYED.base_url, headers: { 'Api-Key': TOKEN } } };
  const opened = completeConfiguration({ upstreams, listen: { host: '0.0.0.0' } });
  expect(doubts(opened).join('\n')).toContain('can spend upstreams.main.headers;');
  const clients = [{ name: 'one', token: TOKEN }];
  expect(() => completeConfiguration({ upstreams, clients })).toThrow(
    'clients[0].token: is upstreams.main.headers, which clients are not to have',
  );
  const configuration = completeConfiguration({ upstreams });
  expect(JSON.stringify(redacted(configuration))).not.toContain(TOKEN);
  expect(redactor(configuration, undefined)(`sent ${TOKEN}`)).toBe('sent [redacted]');
});
