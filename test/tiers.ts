/** A tier says what a test costs, and what it needs besides Node and the npm packages. */
export type Tier = 'unit' | 'integration' | 'system' | 'llama';

interface Globs {
  readonly include: string[];
  readonly exclude: string[];
}

/**
 * Tests that open sockets or start this repository's processes. They use other programs only if the machine has them.
 * Several files share a process, so each undoes its changes to it.
 */
const INTEGRATION = [
  'test/{admin-host,cli,cli-completion,cli-runs,cli-terminal}.test.ts',
  'test/checkpoint/{run-index-contract,store-contract,salvage-processes}.test.ts',
  'test/checkpoint/file/{kill,torture}.test.ts',
  'test/chaos-proxy/{fault-header,proxy,sdks}.test.ts',
  'test/client/{leaving,pause-on-signals,resumable,resumable-wires,signed-run,standards,stoppable,task-progress,whole-answer}.test.ts',
  'test/config/reference.test.ts',
  'test/e2e/{cut-call,detached,kept-answers,run-list,sdk-openai}.test.ts',
  'test/metrics/{odd-usage,readiness}.test.ts',
  'test/provider/{http1,http2,main,provider}.test.ts',
  'test/proxy/**/{api,call-ledger,call-ledger.property,client-response,conformance,document-answers,fork,kept-answers,kept-answers.property,messages-api}.test.ts',
  'test/proxy/**/{diverged-tasks,notices,numbered-steps,odd-upstreams,passthrough,request-bodies,respond,return,openapi,run-list,run-slots,runs-api,durable-stream-reads,signed-urls,task-calls-api,task-events,task-transcript,tasks-api}.test.ts',
  'test/proxy/**/{undici-transport*,upstream-keys,unparsable-documents}.test.ts',
  'test/**/server.test.ts',
  'test/server/{azure-paths,browser-access,clients,egress,masked-credentials,memory-budget,owner-claim,owner-header}.test.ts',
  'test/server/{compiler-memory,upgrade,upstream-settings,young-generation}.test.ts',
  'test/status/{replica,slow-viewer,status-routes}.test.ts',
  'test/tracing/{configuration,off}.test.ts',
  'test/webhooks/{task-webhooks,webhook-delivery}.test.ts',
];

/**
 * Tests that need third-party programs, or too much time for a quick check: they cut an answer at every place, drive
 * every client of a kind, or repeat something until rare cases occur. An integration test takes one of each. If one
 * file tests every store, test/checkpoint/store-deployments.ts picks one of each kind for the quick tier.
 */
const SYSTEM = [
  'test/agents/**/*.test.ts',
  'test/chaos/**/*.test.ts',
  'test/checkpoint/file/{file-forgery,file-processes}.test.ts',
  'test/checkpoint/redis/redis-!(address).test.ts',
  'test/cli-tasks.test.ts',
  'test/client/{resumable.exhaustive,unstored-run}.test.ts',
  'test/compositions/**/*.test.ts',
  'test/conformance/{bad-gateways,suite}.test.ts',
  'test/client-python/**/*.test.ts',
  'test/docker/**/*.test.ts',
  'test/docs/{gateway,provider-page,site,snippets}.test.ts',
  'test/doctor/**/*.test.ts',
  'test/durable-streams/**/*.test.ts',
  'test/e2e/**/*.test.ts',
  'test/examples/**/*.test.ts',
  'test/helm/**/*.test.ts',
  'test/kubernetes/**/*.test.ts',
  'test/{client-package,package,prose}.test.ts',
  'test/prometheus/**/*.test.ts',
  // These cover every byte, every event and every replica, which takes minutes.
  'test/proxy/**/*.exhaustive.test.ts',
  'test/proxy/**/{stored-capabilities,told-once}.test.ts',
  'test/redis/**/*.test.ts',
  'test/rehearsal/**/*.test.ts',
  'test/simulation/histories/reintroduced.test.ts',
  'test/status/page.test.ts',
  'test/tracing/{poor-receiver,traces}.test.ts',
  'test/workers/{supervisor,worker-death}.test.ts',
];

const LLAMA = ['test/llama/**/*.test.ts'];

/**
 * The test files of each tier. Every test file belongs to exactly one: a file that no list names is a unit test, which
 * must neither open sockets nor start processes (test/unit-setup.ts).
 */
export const TIERS: Readonly<Record<Tier, Globs>> = {
  unit: { include: ['test/**/*.test.ts'], exclude: [...INTEGRATION, ...SYSTEM, ...LLAMA] },
  integration: { include: INTEGRATION, exclude: [] },
  system: { include: SYSTEM, exclude: INTEGRATION },
  llama: { include: LLAMA, exclude: [] },
};
