import { describe, expect, test } from 'vitest';
import { framed, type Payload, silence, type Told, tellResponses } from '../../simulation/responses-told.ts';
import {
  begin,
  call,
  completed,
  customCall,
  itemsOf,
  message,
  reasoning,
  responseOf,
  webSearch,
} from './responses-items.ts';

const answer = (attempt: number, ...items: readonly Payload[][]): Payload[] => {
  const said = items.flat();
  return [...begin(attempt), ...said, completed(attempt, itemsOf(said))];
};

const outputOf = ({ events }: Told): readonly Record<string, unknown>[] => {
  const response = events.at(-1)?.response as { output?: Record<string, unknown>[] } | undefined;
  return response?.output ?? [];
};
const typesOf = ({ events }: Told) => events.map(({ type }) => type.replace('response.', ''));
const textOf = (item: Record<string, unknown> | undefined) =>
  (item?.content as { text: string }[] | undefined)?.[0]?.text;

const SEA = ['The tide comes in ', 'twice a day, ', 'and goes out ', 'again as often.'];

describe('a healthy stream', () => {
  const place = { item_id: 'msg_1', output_index: 3, content_index: 0 };
  const annotated = message('msg_1', 3, SEA, { phase: 'final_answer' }).toSpliced(4, 0, {
    type: 'response.output_text.annotation.added',
    ...place,
    annotation_index: 0,
    annotation: { type: 'url_citation', start_index: 0, end_index: 8, url: 'https://tide', title: 'Tide' },
  });
  const everything = answer(
    1,
    reasoning('rs_1', 0, ['They ask ', 'about the sea.']),
    reasoning('rs_2', 1, []),
    webSearch('ws_1', 2),
    annotated,
    call('a', 4, ['{"city":', '"Brest"}']),
    customCall('b', 5, ['*** Begin ', '"patch"\n']),
    [
      {
        type: 'response.output_item.added',
        output_index: 6,
        item: { id: 'cu_1', type: 'computer_call', call_id: 'call_c', status: 'in_progress', action: {} },
      },
      {
        type: 'response.output_item.done',
        output_index: 6,
        item: {
          id: 'cu_1',
          type: 'computer_call',
          call_id: 'call_c',
          status: 'completed',
          action: { type: 'click', x: 1, y: 2 },
        },
      },
      {
        type: 'response.output_item.added',
        output_index: 7,
        item: { id: 'ig_1', type: 'image_generation_call', status: 'in_progress' },
      },
      {
        type: 'response.image_generation_call.partial_image',
        output_index: 7,
        item_id: 'ig_1',
        partial_image_index: 0,
        partial_image_b64: 'AA==',
      },
      {
        type: 'response.output_item.done',
        output_index: 7,
        item: { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: 'AA==' },
      },
      { type: 'response.of_the_future', what: 'nobody knows' },
      {
        type: 'response.output_item.added',
        output_index: 8,
        item: { id: 'x_1', type: 'thing_of_the_future' },
      },
      { type: 'response.thing_of_the_future.delta', output_index: 8, item_id: 'x_1', delta: '?' },
      {
        type: 'response.output_item.done',
        output_index: 8,
        item: { id: 'x_1', type: 'thing_of_the_future', thing: '?' },
      },
    ],
  );

  test('passes byte for byte, whatever its events are', async () => {
    const told = await tellResponses([everything]);
    expect(told.outcome).toBe('complete');
    expect(told.body).toBe(framed(everything).join(''));
  });

  test('with signs of life, too, before anything was said and in between', async () => {
    const events = [...begin(1), { type: 'keepalive' }, ...reasoning('rs_1', 0, []), { type: 'keepalive' }];
    const rest = message('msg_1', 1, SEA);
    const all = [...events, ...rest, completed(1, itemsOf([...events, ...rest]))];
    expect((await tellResponses([all])).body).toBe(framed(all).join(''));
  });

  test('to a client that sees calls as they come', async () => {
    const told = await tellResponses([everything], { events: 'chunks' });
    expect(told.body).toBe(framed(everything).join(''));
  });

  test('that is incomplete ends as it does', async () => {
    const said = message('msg_1', 0, SEA);
    const response = responseOf(1, 'incomplete', {
      incomplete_details: { reason: 'content_filter' },
      output: itemsOf(said),
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    });
    const all = [...begin(1), ...said, { type: 'response.incomplete', response }];
    const told = await tellResponses([all]);
    expect(told.body).toBe(framed(all).join(''));
    expect(told.stream.finish).toBe('content_filter');
  });

  test('says nothing before something was said', async () => {
    const told = await tellResponses([
      [...begin(1), ...reasoning('rs_1', 0, [])],
      answer(2, message('msg_2', 0, SEA)),
    ]);
    // The client saw nothing of the first response, so this is its only one.
    expect(told.outcome).toBe('recovered');
    expect(told.events.map(({ sequence_number }) => sequence_number)).toEqual(told.events.map((_, n) => n));
    expect(told.events[0]?.response).toMatchObject({ id: 'resp_2' });
    expect(outputOf(told).map(({ id }) => id)).toEqual(['msg_2']);
  });
});

describe('a model that says nothing for long', () => {
  const minutes = (count: number): Payload[] =>
    Array.from({ length: 2 * count }, () => [silence(30_000), { type: 'keepalive' }]).flat();

  test.each([
    ['thinks', reasoning('rs_1', 0, []).slice(0, 1)],
    ['uses a tool of its provider', webSearch('ws_1', 0).slice(0, 2)],
  ])('is waited for while it %s', async (_, at_work) => {
    const said = [...at_work, ...minutes(8), ...message('msg_1', 1, SEA)];
    const told = await tellResponses([[...begin(1), ...said, completed(1, itemsOf(said))]]);
    expect(told.outcome).toBe('complete');
    expect(told.events.filter(({ type }) => type === 'keepalive')).toHaveLength(16);
  });

  test('is not waited for if it never began', async () => {
    const told = await tellResponses([[...begin(1), ...minutes(8)], answer(2, message('msg_2', 0, SEA))]);
    expect(told.outcome).toBe('recovered');
    expect(told.stream).toMatchObject({ violations: [], text: SEA.join('') });
  });
});

describe('a recovered answer', () => {
  const cut = [...begin(1), ...message('msg_1', 0, SEA).slice(0, 4)];

  test('is one response with one message, whose text is joined', async () => {
    const told = await tellResponses([cut, answer(2, message('msg_2', 0, SEA.slice(2)))]);
    expect(told.stream).toMatchObject({ violations: [], text: SEA.join(''), done: true });
    expect(typesOf(told)).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'content_part.added',
      ...Array.from({ length: told.events.length - 8 }, () => 'output_text.delta'),
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'completed',
    ]);
    expect(outputOf(told)).toMatchObject([
      { id: 'msg_1', status: 'completed', content: [{ text: SEA.join('') }] },
    ]);
    expect(told.events.at(-1)?.response).toMatchObject({
      id: 'resp_1',
      created_at: 1_700_000_001,
      status: 'completed',
      usage: { input_tokens: expect.any(Number) as number, output_tokens: expect.any(Number) as number },
    });
  });

  test('does not show what the model thought before it continued', async () => {
    const rest = answer(2, reasoning('rs_2', 0, ['Where was I?']), message('msg_2', 1, SEA.slice(2)));
    const told = await tellResponses([cut, rest]);
    expect(told.stream).toMatchObject({ violations: [], reasoning: '', text: SEA.join('') });
    expect(outputOf(told).map(({ id }) => id)).toEqual(['msg_1']);
  });

  test('has the calls of the rest, under names that go with nothing unseen', async () => {
    const rest = answer(
      2,
      reasoning('rs_2', 0, []),
      message('msg_2', 1, SEA.slice(2)),
      call('a', 2, ['{"city":', '"Brest"}']),
    );
    const told = await tellResponses([cut, rest]);
    expect(told.stream).toMatchObject({
      violations: [],
      toolCalls: [{ id: 'call_a', name: 'forecast', arguments: '{"city":"Brest"}' }],
      finish: 'tool_calls',
    });
    expect(outputOf(told)).toMatchObject([
      { id: 'msg_1' },
      { id: 'fc_1_1', type: 'function_call', call_id: 'call_a', status: 'completed' },
    ]);
  });

  test('keeps the thoughts that come after it has continued, under the name that their secret goes with', async () => {
    const long = `${'and goes out again as often, '.repeat(20)}always.`;
    const rest = answer(
      2,
      message('msg_2', 0, [long]),
      reasoning('rs_2', 1, ['One more look.']),
      call('a', 2, ['{}']),
    );
    const told = await tellResponses([cut, rest]);
    expect(told.stream).toMatchObject({ violations: [], reasoning: 'One more look.' });
    expect(outputOf(told)).toMatchObject([
      { id: 'msg_1' },
      { id: 'rs_2', encrypted_content: 'thought by rs_2' },
      { type: 'function_call', arguments: '{}' },
    ]);
  });

  test('moves what is cited to where it is in the joined text', async () => {
    const rest = message('msg_2', 0, [`${'and goes out again. '.repeat(25)}`, 'Ask the sea.']);
    const cited = {
      type: 'response.output_text.annotation.added',
      item_id: 'msg_2',
      output_index: 0,
      content_index: 0,
      annotation_index: 0,
      annotation: {
        type: 'url_citation',
        start_index: 508,
        end_index: 511,
        url: 'https://sea',
        title: 'Sea',
      },
    };
    const told = await tellResponses([
      cut,
      [...begin(2), ...rest.toSpliced(4, 0, cited), completed(2, itemsOf(rest))],
    ]);
    const annotation = told.events.find(({ type }) => type.endsWith('annotation.added')) as Payload & {
      annotation: { start_index: number; end_index: number };
    };
    const { start_index, end_index } = annotation.annotation;
    expect(told.stream.text.slice(start_index, end_index)).toBe('sea');
    expect(annotation).toMatchObject({ item_id: 'msg_1', annotation_index: 0 });
    expect(outputOf(told)[0]).toMatchObject({ content: [{ annotations: [annotation.annotation] }] });
  });

  test('ends what its provider was doing when it was cut, beside a call that is the answer', async () => {
    const searching = webSearch('ws_1', 1).slice(0, 3);
    const told = await tellResponses([[...begin(1), ...call('a', 0, ['{}']), ...searching]]);
    expect(told.outcome).toBe('salvaged');
    expect(outputOf(told)).toMatchObject([
      { type: 'function_call', status: 'completed' },
      { id: 'ws_1', status: 'failed' },
    ]);
  });

  test('is rebuilt although its pieces were never sent', async () => {
    const whole = message('msg_1', 0, SEA).filter(({ type }) => type !== 'response.output_text.delta');
    const told = await tellResponses([
      [...begin(1), ...whole.slice(0, 3)],
      answer(2, message('msg_2', 0, [' And so on.'])),
    ]);
    expect(told.stream.text).toBe(' And so on.');
    expect(outputOf(told).map(textOf).join('')).toBe(`${SEA.join('')} And so on.`);
    expect(JSON.stringify(told.asked[0]?.input)).toContain(SEA.join(''));
  });
});

describe('thoughts', () => {
  const begun = [...begin(1), ...reasoning('rs_1', 0, ['They ask ', 'about the sea.']).slice(0, 3)];
  const finished = [...begin(1), ...reasoning('rs_1', 0, ['They ask ', 'about the sea.'])];
  const again = answer(
    2,
    reasoning('rs_2', 0, ['They want to know ', 'about the sea.']),
    message('msg_2', 1, SEA),
  );
  const ofItems = ({ events }: Told, type: string) =>
    events.filter((event) => event.type === `response.output_item.${type}`).map(({ item }) => item);

  test('that were cut end as what they are, and those made again are an item of their own', async () => {
    const told = await tellResponses([begun, again]);
    const whole = {
      id: 'rs_2',
      encrypted_content: 'thought by rs_2',
      summary: [{ type: 'summary_text', text: 'They want to know about the sea.' }],
    };
    expect(told.stream).toMatchObject({
      violations: [],
      reasoning: 'They ask They want to know about the sea.',
      text: SEA.join(''),
    });
    expect(ofItems(told, 'added')).toMatchObject([{ id: 'rs_1' }, { id: 'rs_2', summary: [] }, {}]);
    const cut = { id: 'rs_1', status: 'incomplete', encrypted_content: 'begun by rs_1' };
    expect(ofItems(told, 'done')).toMatchObject([cut, whole, { type: 'message' }]);
    expect(outputOf(told)).toMatchObject([whole, { type: 'message' }]);
    expect(typesOf(told).slice(4, 8)).toEqual([
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
    ]);
  });

  test('that were cut again and again leave one item in the end', async () => {
    const third = answer(3, reasoning('rs_3', 0, ['The sea.']), message('msg_3', 1, SEA));
    const told = await tellResponses([
      begun,
      [...begin(2), ...reasoning('rs_2', 0, ['They ', 'ask']).slice(0, 4)],
      third,
    ]);
    expect(told.stream).toMatchObject({ violations: [], reasoning: 'They ask They askThe sea.' });
    expect(outputOf(told)).toMatchObject([{ id: 'rs_3', encrypted_content: 'thought by rs_3' }, {}]);
  });

  test('that were cut and not made again leave none', async () => {
    const told = await tellResponses([begun, answer(2, call('a', 0, ['{"city":"Brest"}']))]);
    expect(told.stream).toMatchObject({ violations: [], toolCalls: [{ id: 'call_a' }] });
    expect(outputOf(told)).toMatchObject([{ type: 'function_call' }]);
  });

  test('that were cut behind a call that is the answer leave none', async () => {
    const thought = reasoning('rs_1', 1, ['They ask ', 'about the sea.']).slice(0, 3);
    const told = await tellResponses([[...begin(1), ...call('a', 0, ['{}']), ...thought]]);
    expect(told.outcome).toBe('salvaged');
    expect(told.stream.violations).toEqual([]);
    expect(outputOf(told)).toMatchObject([{ type: 'function_call', status: 'completed' }]);
  });

  test('that were finished are kept, and not shown another time', async () => {
    const told = await tellResponses([finished, again]);
    expect(told.stream).toMatchObject({
      violations: [],
      reasoning: 'They ask about the sea.',
      text: SEA.join(''),
    });
    expect(outputOf(told)).toMatchObject([
      { id: 'rs_1', encrypted_content: 'thought by rs_1', summary: [{ text: 'They ask about the sea.' }] },
      { id: 'msg_1_1' },
    ]);
  });

  test('that were finished are kept, however the same ones continue', async () => {
    const more = answer(
      2,
      reasoning('rs_2', 0, ['They ask about the sea.', ' And the moon.']),
      message('msg_2', 1, SEA),
    );
    const told = await tellResponses([finished, more]);
    expect(told.stream).toMatchObject({ violations: [], reasoning: 'They ask about the sea.' });
    expect(outputOf(told).map(({ id }) => id)).toEqual(['rs_1', 'msg_1_1']);
  });

  describe('that a text rests on', () => {
    const text = message('msg_1', 1, SEA).slice(0, 4);
    const rest = answer(2, message('msg_2', 0, SEA.slice(2)));
    const item = reasoning('rs_1', 0, ['They ask ', 'about the sea.']).at(-1)?.item;

    test('go with it where the client keeps them, too', async () => {
      const told = await tellResponses([[...finished, ...text], rest], { asked: { store: false } });
      expect(told.stream).toMatchObject({ violations: [], text: SEA.join('') });
      expect(told.asked[0]?.input).toMatchObject([{}, item, { role: 'assistant' }, { role: 'user' }]);
    });

    test('go alone: those behind it would be in front of it', async () => {
      const more = [
        ...message('msg_1', 1, ['Wet. ']),
        ...reasoning('rs_3', 2, []),
        ...message('msg_3', 3, SEA).slice(0, 4),
      ];
      const told = await tellResponses([[...finished, ...more], rest], { asked: { store: false } });
      expect(told.asked[0]?.input).toMatchObject([{}, item, { role: 'assistant' }, { role: 'user' }]);
    });

    test('stay away where the provider keeps answers itself', async () => {
      const told = await tellResponses([[...finished, ...text], rest]);
      expect(JSON.stringify(told.asked[0]?.input)).not.toContain('rs_1');
    });

    test('are left out where they are not taken back', async () => {
      const told = await tellResponses([[...finished, ...text], [], rest], {
        asked: { store: false },
        refusals: {
          1: { error: { type: 'invalid_request_error', code: 'invalid_encrypted_content', message: 'no' } },
        },
      });
      expect(told.stream).toMatchObject({ violations: [], text: SEA.join('') });
      expect(JSON.stringify(told.asked[0]?.input)).toContain('rs_1');
      expect(JSON.stringify(told.asked[1]?.input)).not.toContain('rs_1');
    });
  });
});

describe('calls', () => {
  test('are not seen before they are closed, and not at all if they are cut', async () => {
    const cutCall = [
      ...begin(1),
      ...message('msg_1', 0, SEA),
      ...call('a', 1, ['{"city":', '"Brest"}']).slice(0, 3),
    ];
    const told = await tellResponses([cutCall, answer(2, call('b', 0, ['{"city":"Brest"}']))], {
      recovery: { tool_proof: 3 },
    });
    expect(told.stream).toMatchObject({ violations: [], toolCalls: [{ id: 'call_b' }] });
    expect(JSON.stringify(told.events)).not.toContain('"call_a"');
  });

  test('are settled when they are whole, and the turn ends with them', async () => {
    const settled = [
      ...begin(1),
      ...call('a', 0, ['{"city":', '"Brest"}']),
      ...call('b', 1, ['{"ci']).slice(0, 2),
    ];
    const told = await tellResponses([settled]);
    expect(told.outcome).toBe('salvaged');
    expect(told.stream).toMatchObject({
      violations: [],
      toolCalls: [{ id: 'call_a' }],
      finish: 'tool_calls',
    });
    // Up to that point, everything is forwarded unchanged.
    expect(told.body.startsWith(framed(settled).slice(0, -2).join(''))).toBe(true);
  });

  test('are whole once their arguments are, without the end of their item', async () => {
    const settled = [...begin(1), ...call('a', 0, ['{"city":', '"Brest"}']).slice(0, 4)];
    const told = await tellResponses([settled], { recovery: { tool_proof: 3 } });
    expect(told.stream).toMatchObject({
      violations: [],
      toolCalls: [{ id: 'call_a' }],
      finish: 'tool_calls',
    });
  });

  test('of free text are calls like others', async () => {
    const text = '*** Begin "patch"\n\\ 🌊';
    const settled = [...begin(1), ...customCall('a', 0, [text.slice(0, 12), text.slice(12)]).slice(0, -1)];
    const told = await tellResponses([settled], { recovery: { tool_proof: 3 } });
    expect(told.outcome).toBe('salvaged');
    expect(outputOf(told)).toMatchObject([{ type: 'custom_tool_call', input: text, status: 'completed' }]);
  });

  test('of free text that were cut are made again', async () => {
    const cutCall = [
      ...begin(1),
      ...message('msg_1', 0, SEA),
      ...customCall('a', 1, ['*** ', 'Begin']).slice(0, 3),
    ];
    const told = await tellResponses([cutCall, answer(2, customCall('b', 0, ['*** Begin patch']))]);
    expect(outputOf(told)).toMatchObject([{ id: 'msg_1' }, { call_id: 'call_b', input: '*** Begin patch' }]);
    expect(JSON.stringify(told.asked[0]?.input)).toContain('Your call to `patch` was cut off');
  });

  test('without arguments get none', async () => {
    const told = await tellResponses([answer(1, call('a', 0, []))]);
    expect(told.stream).toMatchObject({ violations: [], toolCalls: [{ arguments: '{}' }] });
  });

  test('that a limit cut are no calls', async () => {
    const [added, delta] = call('a', 1, ['{"city":']);
    const item = {
      id: 'fc_a',
      type: 'function_call',
      call_id: 'call_a',
      name: 'forecast',
      arguments: '{"city":',
      status: 'incomplete',
    };
    const said = message('msg_1', 0, SEA);
    const response = responseOf(1, 'incomplete', {
      incomplete_details: { reason: 'max_output_tokens' },
      output: [...itemsOf(said), item],
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    });
    const told = await tellResponses([
      [
        ...begin(1),
        ...said,
        added as Payload,
        delta as Payload,
        { type: 'response.output_item.done', output_index: 1, item },
        { type: 'response.incomplete', response },
      ],
    ]);
    expect(told.stream).toMatchObject({ violations: [], toolCalls: [], finish: 'length' });
  });

  test('that say what another has said can be dropped, and leave no gap', async () => {
    const told = await tellResponses(
      [
        answer(
          1,
          call('a', 0, ['{"city":"Brest"}']),
          call('b', 1, ['{"city":"Brest"}']),
          call('c', 2, ['{}']),
        ),
      ],
      { recovery: { drop_repeated_calls: true } },
    );
    expect(told.stream).toMatchObject({ violations: [], toolCalls: [{ id: 'call_a' }, { id: 'call_c' }] });
  });

  test('wait for the message that they come after, where that is still held back', async () => {
    const cut = [...begin(1), ...message('msg_1', 0, SEA).slice(0, 5)];
    const rest = answer(2, message('msg_2', 0, ['again.']), call('a', 1, ['{}']));
    const told = await tellResponses([cut, rest]);
    expect(told.stream).toMatchObject({ violations: [], toolCalls: [{ id: 'call_a' }] });
    expect(outputOf(told).map(({ type }) => type)).toEqual(['message', 'function_call']);
  });
});

describe('what cannot be continued', () => {
  test('is failed with an error at the top and in the response, which keeps its identity', async () => {
    const told = await tellResponses([[...begin(1), ...message('msg_1', 0, SEA).slice(0, 4)]]);
    expect(told.outcome).toBe('failed');
    expect(told.events.at(-2)).toMatchObject({
      type: 'error',
      sequence_number: told.events.length - 2,
      error: {
        type: 'stream_interrupted',
        code: 'stream_interrupted',
        message: expect.stringContaining('interrupted') as string,
        param: null,
        holdfast: { stream_id: 'resp_1' },
      },
    });
    expect(told.events.at(-1)).toMatchObject({
      type: 'response.failed',
      sequence_number: told.events.length - 1,
      response: { id: 'resp_1', status: 'failed', error: { code: 'server_error' } },
      error: { type: 'stream_interrupted', holdfast: { stream_id: 'resp_1' } },
    });
  });

  test('is not asked for again where probabilities were asked for', async () => {
    const cut = [...begin(1), ...message('msg_1', 0, SEA).slice(0, 4)];
    const told = await tellResponses([cut, answer(2, message('msg_2', 0, SEA))], {
      asked: { top_logprobs: 2 },
    });
    expect(told.outcome).toBe('failed');
    expect(told.events.at(-1)?.error).toMatchObject({ code: 'not_recoverable' });
  });
});

describe('a document', () => {
  const pieces = ['{"city":"Brest",', '"days":', '3}'];
  const asked = { text: { format: { type: 'json_schema', name: 'x', schema: {} } } };

  test('is replayed, for half of it nothing else fits', async () => {
    const cut = [...begin(1), ...message('msg_1', 0, pieces).slice(0, 4)];
    const told = await tellResponses([cut, answer(2, message('msg_2', 0, pieces))], { asked });
    expect(told.stream).toMatchObject({ violations: [], text: pieces.join('') });
    expect(told.asked[0]?.input).toEqual([{ role: 'user', content: 'Tell me.' }]);
  });

  test('has the thoughts that were cut behind it continued in an item of their own, which keeps its secret', async () => {
    const thoughts = ['Is three ', 'days enough? ', 'It is.'];
    const cut = [...begin(1), ...message('msg_1', 0, pieces), ...reasoning('rs_1', 1, thoughts).slice(0, 4)];
    const again = answer(2, message('msg_2', 0, pieces), reasoning('rs_2', 1, thoughts));
    const told = await tellResponses([cut, again], { asked });
    expect(told.stream).toMatchObject({
      violations: [],
      text: pieces.join(''),
      reasoning: thoughts.join(''),
    });
    expect(outputOf(told)).toMatchObject([
      { type: 'message' },
      {
        id: 'rs_2',
        encrypted_content: 'thought by rs_2',
        summary: [{ type: 'summary_text', text: 'It is.' }],
      },
    ]);
  });
});
