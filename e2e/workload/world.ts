import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import type { Rng } from '../../server/test/rng.ts'
import {
  startFakeModelServer,
  type FakeBehaviour,
  type FakeModelServer,
  type FakeRequest,
} from '../../server/test/fake-models/fake-model-server.ts'
import type { Effect } from '../../server/test/history/check-effects.ts'

/** What a task is to do, as its input: the model reads it from there, so it remembers nothing between calls. */
export interface Plan {
  /** What the creator knows the task by. */
  marker: string
  /** The calls that each answer of the model asks for; after them it answers with text. */
  turns: PlannedCall[][]
}

/** A call by the name of its tool; `seconds` for `wait`. */
export interface PlannedCall {
  tool: keyof typeof observedTools | 'wait'
  seconds?: number
}

/** Tools that the observer serves: their name, their safety and their request. */
export const observedTools = {
  look: { safety: 'safe', method: 'GET' },
  note: { safety: 'keyed', method: 'POST' },
  pay: { safety: 'unsafe', method: 'POST' },
} as const satisfies Record<string, { safety: ToolSafety; method: string }>

/** The parts that are never killed: a provider of models, and a receiver of tools' requests. */
export interface World {
  model: FakeModelServer
  observer_url: string
  /** Requests that have taken effect, in their order. */
  effects: Effect[]
  /** From now on nothing goes wrong any more, and nothing takes long. */
  heal(): void
  close(): Promise<void>
}

/** Of calls of the model: how many are answered with an error or cut. */
const modelFaults = 0.04
/** Of requests of tools: how many take effect and get no answer. */
const lostAnswers = 0.04
const modelDelayMax_ms = 60
const toolDelayMax_ms = 600

export async function startWorld(rng: Rng): Promise<World> {
  let healed = false
  const model = await startFakeModelServer()
  const modelRng = rng.fork()
  model.always((request) => {
    const fault = !healed && modelRng.happens(modelFaults) && modelFault(modelRng)
    return fault || { ...answerOf(request), delay_ms: healed ? 0 : modelRng.between(0, modelDelayMax_ms) }
  })
  const effects: Effect[] = []
  const toolRng = rng.fork()
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const effect = await readEffect(request)
    effects.push(effect)
    const isLost = !healed && toolRng.happens(lostAnswers)
    if (!healed) await delay(toolRng.between(0, toolDelayMax_ms))
    if (isLost) response.socket?.resetAndDestroy()
    else response.end(`done ${effect.call}`)
  }
  const server = createServer((request, response) => {
    response.on('error', () => {})
    receive(request, response).catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    model,
    observer_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    effects,
    heal: () => void (healed = true),
    async close() {
      server.closeAllConnections()
      server.close()
      await Promise.all([once(server, 'close'), model.close()])
    },
  }
}

/** The name of a call: the same in every repetition, another one for every call of every task. */
export function callName(marker: string, turn: number, index: number): string {
  return `${marker}/${turn}/${index}`
}

function modelFault(rng: Rng): FakeBehaviour {
  return rng.pick<FakeBehaviour>([
    { do: 'status', status: 503 },
    { do: 'status', status: 429, headers: { 'retry-after': '0' } },
    { do: 'reset' },
    { do: 'cut', pieces: 2, text: 'This will never be finished.' },
  ])
}

/** Which answer of its plan a conversation is at: as many as the assistant has given since. */
function answerOf({ body }: FakeRequest): FakeBehaviour {
  const messages = body['messages'] as { role: string; content: unknown }[]
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && String(content).startsWith('{"marker"'))
  const { marker, turns } = JSON.parse(String(messages[at]!.content)) as Plan
  const turn = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  const calls = turns[turn]
  if (!calls) return { do: 'answer', text: `All of ${marker} is done.` }
  return {
    do: 'answer',
    text: turn % 2 === 0 ? 'Let me see.' : '',
    tool_calls: calls.map(({ tool, seconds }, index) => ({
      id: `call_${turn}_${index}`,
      name: tool,
      arguments: tool === 'wait' ? { seconds } : { call: callName(marker, turn, index) },
    })),
  }
}

/** A request of a tool, read to its end: from then on it has taken effect. */
async function readEffect(request: IncomingMessage): Promise<Effect> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const url = new URL(request.url!, 'http://witness')
  const tool = url.pathname.slice(1) as keyof typeof observedTools
  const { safety, method } = observedTools[tool]
  if (request.method !== method) throw new Error(`${tool} came as ${request.method}`)
  const call =
    method === 'GET'
      ? url.searchParams.get('call')
      : (JSON.parse(Buffer.concat(chunks).toString()) as { call: string }).call
  if (!call) throw new Error(`${tool} came without the name of its call`)
  const key = request.headers['idempotency-key']
  return { call, safety, key: typeof key === 'string' ? key : undefined }
}
