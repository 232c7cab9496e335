import type { ModelErrorCode } from '../../src/engine/models/model.ts'
import type { FakeBehaviour, FakeRequest } from './fake-model-server.ts'

/** Something that a provider does wrong, in either form, and what becomes of a task that meets it every time. */
export interface ModelFault {
  what: string
  behave: (request: Pick<FakeRequest, 'path'>) => FakeBehaviour
  code: ModelErrorCode
  /** Whether the call is worth repeating. */
  retryable: boolean
}

const text = 'one two three four'
const always = (behaviour: FakeBehaviour) => (): FakeBehaviour => behaviour
const isAnthropic = ({ path }: Pick<FakeRequest, 'path'>): boolean => path === '/v1/messages'
const retryNow = { 'retry-after-ms': '1' }

/** What providers do wrong, as far as one call shows it. */
export const modelFaults: ModelFault[] = [
  {
    what: 'answers 429 without saying how long to wait',
    behave: always({ do: 'status', status: 429 }),
    code: 'provider_rate_limited',
    retryable: true,
  },
  {
    what: 'answers 429 and says how long to wait',
    behave: always({ do: 'status', status: 429, headers: retryNow }),
    code: 'provider_rate_limited',
    retryable: true,
  },
  { what: 'answers 500', behave: always({ do: 'status', status: 500 }), code: 'provider_unavailable', retryable: true },
  {
    what: 'answers 503 and says how long to wait',
    behave: always({ do: 'status', status: 503, headers: retryNow }),
    code: 'provider_unavailable',
    retryable: true,
  },
  {
    what: 'refuses the request',
    behave: always({ do: 'status', status: 400 }),
    code: 'provider_refused_request',
    retryable: false,
  },
  { what: 'resets the connection', behave: always({ do: 'reset' }), code: 'provider_unavailable', retryable: true },
  // The first piece is the head of an answer, the last one says that it is finished.
  ...[1, 2, 4].map((pieces): ModelFault => ({
    what: `cuts the stream after piece ${pieces}`,
    behave: always({ do: 'cut', pieces, text }),
    code: 'provider_unavailable',
    retryable: true,
  })),
  {
    what: 'cuts the stream in the middle of the arguments of a call',
    behave: always({ do: 'cut', pieces: 4, tool_calls: [{ name: 'current_time', arguments: { time_zone: 'UTC' } }] }),
    code: 'provider_unavailable',
    retryable: true,
  },
  {
    what: 'ends the stream without saying that it is finished',
    behave: always({ do: 'end_early', pieces: 4, text }),
    code: 'provider_unavailable',
    retryable: true,
  },
  {
    what: 'says nothing at all',
    behave: always({ do: 'stall', pieces: 0 }),
    code: 'provider_timeout',
    retryable: true,
  },
  {
    what: 'falls silent in the middle',
    behave: always({ do: 'stall', pieces: 4, text }),
    code: 'provider_timeout',
    retryable: true,
  },
  {
    what: 'sends a stream that is not JSON',
    behave: always({ do: 'raw', body: 'data: {"choices": [\n\ndata: oops\n\n' }),
    code: 'provider_bad_answer',
    retryable: true,
  },
  {
    what: 'sends values of the wrong types',
    behave: (request) => ({
      do: 'raw',
      body: isAnthropic(request)
        ? 'event: message_start\ndata: {"type":"message_start","message":{"id":5,"content":7,"usage":"none"}}\n\n'
        : 'data: {"id":1,"choices":[{"index":"a","delta":{"content":5}}],"usage":"many"}\n\n',
    }),
    code: 'provider_bad_answer',
    retryable: true,
  },
  {
    what: 'complains with status 200',
    behave: always({
      do: 'raw',
      body: '{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}',
      content_type: 'application/json',
    }),
    code: 'provider_rate_limited',
    retryable: true,
  },
  {
    what: 'complains in the middle of the stream',
    behave: always({ do: 'error_event', pieces: 4, text, error: { type: 'server_error', message: 'it broke' } }),
    code: 'provider_unavailable',
    retryable: true,
  },
  {
    what: 'answers with 10 MB',
    behave: always({ do: 'answer', text: `${'x'.repeat(128 * 1024)} `.repeat(80) }),
    code: 'provider_bad_answer',
    retryable: false,
  },
  {
    what: 'asks for a thousand calls at once',
    behave: always({
      do: 'answer',
      tool_calls: Array.from({ length: 1000 }, () => ({ name: 'current_time', arguments: {} })),
    }),
    code: 'provider_bad_answer',
    retryable: false,
  },
]
