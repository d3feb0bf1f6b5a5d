/** A page by its path in the repository, with an anchor if it leads to a section. */
interface Entry {
  readonly title: string;
  readonly page: string;
}

interface Group {
  readonly title: string;
  readonly pages: readonly Entry[];
}

const group = (title: string, pages: Readonly<Record<string, string>>): Group => ({
  title,
  pages: Object.entries(pages).map(([name, page]) => ({ title: name, page })),
});

/** The pages in reading order. The decisions in `docs/adr/` have a group of their own. */
export const GROUPS: readonly Group[] = [
  group('Start', {
    'Five minutes': 'docs/start.md',
    'What Holdfast does': 'README.md',
    'All pages': 'docs/README.md',
  }),
  group('SDKs', {
    'Quick starts': 'docs/sdks.md',
    'holdfast/client': 'docs/client.md',
    'The client without the server': 'clients/javascript/README.md',
    'The client for Python': 'clients/python/README.md',
    Browsers: 'docs/browsers.md',
    'A chat that survives': 'examples/use-chat/README.md',
  }),
  group('Agents', {
    'Coding agents': 'docs/agents.md',
  }),
  group('Recovery', {
    'How recovery works': 'docs/how-recovery-works.md',
    'The contract': 'docs/recovery.md',
    'When a replica dies': 'docs/resuming.md',
    'Salvage and notices': 'docs/salvage.md',
    'Several targets': 'docs/targets.md',
    Hedging: 'docs/hedging.md',
    'Tuning the clocks': 'docs/clocks.md',
  }),
  group('Tasks', {
    Tasks: 'docs/tasks.md',
    Webhooks: 'docs/webhooks.md',
  }),
  group('Run it', {
    'Container image': 'docs/docker.md',
    'Several replicas': 'docs/gateway.md',
    Workers: 'docs/workers.md',
    'Kubernetes: a gateway': 'docs/kubernetes.md',
    'Kubernetes: a sidecar': 'docs/sidecar.md',
    'Values of the chart': 'helm/holdfast/README.md',
    'With LiteLLM, Portkey, Bifrost or vLLM': 'docs/with-other-gateways.md',
    Stores: 'docs/stores.md',
    'Sizing Redis': 'docs/redis-sizing.md',
    'Keys and connections': 'docs/upstreams.md',
    'Azure OpenAI': 'docs/azure.md',
    'Vertex AI': 'docs/vertex.md',
    'Amazon Bedrock': 'docs/bedrock.md',
    Security: 'docs/security.md',
  }),
  group('Operate', {
    Troubleshooting: 'docs/troubleshooting.md',
    'Alerts and runbooks': 'docs/troubleshooting.md#alerts',
    'What it costs': 'docs/performance.md',
    Metrics: 'docs/metrics.md',
    'Reloading the configuration': 'docs/reload.md',
    'Status page': 'docs/status-page.md',
    Traces: 'docs/tracing.md',
    Upgrading: 'docs/upgrading.md',
    'A rollout, rehearsed': 'docs/rollout.md',
    'Breaking answers on purpose': 'docs/chaos.md',
  }),
  group('Reference', {
    Configuration: 'docs/configuration.md',
    'Command line': 'docs/cli.md',
    'HTTP API': 'docs/api.md',
    'Error codes': 'docs/troubleshooting.md#error-codes',
    Providers: 'docs/providers.md',
    Changelog: 'CHANGELOG.md',
  }),
  group('Compare', {
    'Other gateways': 'docs/comparison.md',
    Conformance: 'docs/conformance.md',
    'The conformance suite': 'packages/conformance/README.md',
  }),
  group('Contribute', {
    Contributing: 'CONTRIBUTING.md',
    Architecture: 'ARCHITECTURE.md',
    'The life of a run': 'docs/life-of-a-run.md',
    'Extending Holdfast': 'docs/extending.md',
    'Adding a provider': 'docs/adding-a-provider.md',
    Roadmap: 'ROADMAP.md',
    Releasing: 'RELEASING.md',
    'Code of conduct': 'CODE_OF_CONDUCT.md',
    'Reporting a vulnerability': 'SECURITY.md',
  }),
];
