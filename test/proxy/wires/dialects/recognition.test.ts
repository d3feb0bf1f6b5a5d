import { describe, expect, test } from 'vitest';
import { NO_TRACES, type Samples } from '../../../../src/proxy/wires/common/dialect.ts';
import { DIALECTS, dialectAt, dialectBehind } from '../../../../src/proxy/wires/dialects/registry.ts';

describe('by its address', () => {
  test.each([
    ['https://api.openai.com/v1', 'openai'],
    ['https://eu.api.openai.com/v1', 'openai'],
    ['https://me.openai.azure.com/openai/v1', 'azure'],
    ['https://me.cognitiveservices.azure.com/openai/v1', 'azure'],
    ['https://me.services.ai.azure.com/openai/v1', 'azure'],
    ['https://api.anthropic.com/v1', 'anthropic'],
    ['https://generativelanguage.googleapis.com/v1beta/openai', 'gemini'],
    ['https://aiplatform.googleapis.com/v1/projects/p/locations/global/endpoints/openapi', 'gemini'],
    ['https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi', 'gemini'],
    ['https://api.mistral.ai/v1', 'mistral'],
    ['https://api.deepseek.com', 'deepseek'],
    ['https://api.moonshot.ai/v1', 'kimi'],
    ['https://api.moonshot.cn/v1', 'kimi'],
    ['https://api.kimi.com/v1', 'kimi'],
    ['https://dashscope.aliyuncs.com/compatible-mode/v1', 'qwen'],
    ['https://dashscope-intl.aliyuncs.com/compatible-mode/v1', 'qwen'],
    ['https://api.groq.com/openai/v1', 'groq'],
    ['https://openrouter.ai/api/v1', 'openrouter'],
    ['https://api.x.ai/v1', 'xai'],
    ['https://api.fireworks.ai/inference/v1', 'fireworks'],
    ['https://api.together.xyz/v1', 'together'],
    ['https://api.cerebras.ai/v1', 'cerebras'],
    ['https://api.deepinfra.com/v1/openai', 'deepinfra'],
    ['https://integrate.api.nvidia.com/v1', 'vllm'],
    ['http://localhost:11434/v1', 'ollama'],
    ['http://[::1]:11434/v1', 'ollama'],
    ['http://127.0.0.1:1234/v1', 'lmstudio'],
    ['https://bedrock-runtime.us-west-2.amazonaws.com/openai/v1', 'bedrock'],
    ['https://bedrock-mantle.eu-west-1.api.aws/v1', 'bedrock'],
    ['https://gateway.ai.cloudflare.com/v1/account/gateway/compat', 'cloudflare'],
    ['https://API.OpenAI.com/v1', 'openai'],
    ['https://api.openai.com:8443/v1', 'openai'],
  ])('%s: %s', (base_url, name) => {
    expect(dialectAt(base_url)?.name).toBe(name);
  });

  test.each([
    'https://api.openai.com.evil.example/v1',
    'https://evilapi.openai.com/v1',
    'https://llm.example.com/v1',
    'https://llm.example.com/api.openai.com/v1',
    'http://127.0.0.1:8000/v1',
    'http://11434.example.com/v1',
    'not a URL',
  ])('%s says nothing', (base_url) => {
    expect(dialectAt(base_url)).toBeUndefined();
  });

  test('no address is that of two dialects', () => {
    const addresses = Object.values(DIALECTS).flatMap((dialect) => dialect.addresses);
    expect(new Set(addresses).size).toBe(addresses.length);
    for (const dialect of Object.values(DIALECTS)) {
      for (const address of dialect.addresses) {
        expect(dialectAt(`https://${address.replaceAll('*', 'anything')}/v1`)?.name).toBe(dialect.name);
      }
    }
  });
});

const chunk = (fields: object, choice: object = {}) => ({
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_760_000_000,
  model: 'model',
  choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null, ...choice }],
  ...fields,
});
const sent = (...events: object[]): Samples => ({ ...NO_TRACES, events: events as Samples['events'] });

describe('by what it sends', () => {
  test.each<[string, Samples]>([
    ['ollama', sent(chunk({ system_fingerprint: 'fp_ollama' }))],
    ['llamacpp', sent(chunk({ system_fingerprint: 'b4798-1782cdfe' }))],
    ['llamacpp', sent(chunk({ system_fingerprint: 'b0-unknown' }))],
    ['llamacpp', sent(chunk({}), { ...chunk({ timings: { predicted_n: 42 } }), choices: [] })],
    ['llamacpp', sent(chunk({}), chunk({ timings: { predicted_n: 42 } }))],
    ['tgi', sent(chunk({ system_fingerprint: '3.0.1-sha-bb9095a' }))],
    ['tgi', sent(chunk({ system_fingerprint: '2.4.1-dev0-native' }))],
    ['sglang', sent(chunk({}, { matched_stop: null }))],
    ['vllm', sent(chunk({ prompt_token_ids: null }))],
    ['vllm', sent(chunk({}), chunk({}, { token_ids: null }))],
    ['vllm', sent(chunk({ system_fingerprint: 'vllm-0.22.0-d254c4e0' }))],
    ['openrouter', sent(chunk({ id: 'gen-1760000000-abc', provider: 'Anthropic' }))],
    ['azure', sent({ choices: [], id: '', model: '', prompt_filter_results: [] })],
    ['groq', sent(chunk({ x_groq: { id: 'req_01' } }))],
    ['openai', sent(chunk({ obfuscation: 'aB3', system_fingerprint: 'fp_44709d6fcb' }))],
    ['litellm', { ...sent(chunk({ obfuscation: 'aB3' })), headers: { 'x-litellm-call-id': 'a' } }],
    ['cloudflare', { ...sent(chunk({ obfuscation: 'aB3' })), headers: { 'cf-aig-event-id': 'a' } }],
  ])('%s', (name, traces) => {
    expect(dialectBehind(traces)?.name).toBe(name);
  });

  test.each<[string, Samples]>([
    ['nothing', NO_TRACES],
    ['a plain chunk', sent(chunk({ system_fingerprint: 'fp_44709d6fcb' }))],
    ['a fingerprint that is nearly that of a build', sent(chunk({ system_fingerprint: 'b0-unknown-fork' }))],
    ['a fingerprint that is none', sent(chunk({ system_fingerprint: null }))],
    ['a gateway that names the provider as well', sent(chunk({ provider: 'Z.AI' }))],
    ['a chunk without choices', sent({ id: 'chatcmpl-1' })],
    ['a choice that is none', sent({ choices: [null] })],
    ['other headers', { ...NO_TRACES, headers: { 'content-type': 'text/event-stream' } }],
  ])('%s says nothing', (_, traces) => {
    expect(dialectBehind(traces)).toBeUndefined();
  });

  test('a gateway is recognised before the provider whose chunks it passes on', () => {
    const passedOn = chunk({ id: 'gen-1', provider: 'OpenAI', obfuscation: 'aB3' });
    expect(dialectBehind(sent(passedOn))?.name).toBe('openrouter');
    expect(dialectBehind({ ...sent(passedOn), headers: { 'x-litellm-version': '1' } })?.name).toBe('litellm');
  });
});
