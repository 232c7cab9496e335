import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { pino } from 'pino'
import type { ToolSafety } from '#contract/tasks/task-lifecycle.ts'
import type { Engine } from '../../src/engine/engine.ts'
import { scriptModel } from '../../src/engine/models/builtin/builtin-script.ts'
import { makeModels, type ModelSettings } from '../../src/engine/models/models.ts'
import type { Model } from '../../src/engine/models/model.ts'
import { startEngine } from '../../src/engine/start.ts'
import { engineTools, type Tool, type ToolSource } from '../../src/engine/tools/tool.ts'
import { openDatabase, type Sql } from '../../src/platform/postgres/database.ts'
import { makeSecrets } from '../../src/platform/crypto/secrets.ts'

/** Settings of a process that only runs an engine. */
export interface EngineProcessOptions {
  connection: pg.ClientConfig
  slots: number
  /** The data folder. Processes of the same folder run one after the other. */
  data_dir: string
  /** Number and duration of the model calls of a task. */
  calls: number
  call_ms: number
  /** How long a call blocks the process after its start. */
  busy_ms?: number
  /** Tasks run their input with `builtin/script`, and call the tools of `witnessTools`. */
  scripted?: boolean
  /** Tasks use the models of these settings and the tools of `witnessTools`. */
  models?: ModelSettings
}

/** A worker in a separate process, which a test may kill. */
export interface EngineProcess {
  child: ChildProcess
  /** Kills it without a chance to clean up. */
  kill(): Promise<void>
  /** Stops it like an operator. */
  stop(): Promise<void>
}

/** This module runs in a forked process, and loads only an engine. */
const self = new URL(import.meta.url)

export async function startEngineProcess(options: EngineProcessOptions): Promise<EngineProcess> {
  const child = fork(self, [JSON.stringify(options)], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exit = once(child, 'exit')
  const [message] = await Promise.race([once(child, 'message'), exit])
  if (message !== 'ready') throw new Error(`the engine's process ended: ${String(message)}`)
  return {
    child,
    async kill() {
      child.kill('SIGKILL')
      await exit
    },
    async stop() {
      child.send('stop')
      await exit
    },
  }
}

/**
 * A model that writes down every call it gets in the table `witness`, so that a test can tell what was called how often
 * and by which process; it calls a tool that does not exist until it was called `calls` times.
 */
export function witnessModel(
  sql: Sql,
  { calls, call_ms, busy_ms = 0 }: Pick<EngineProcessOptions, 'calls' | 'call_ms' | 'busy_ms'>,
): Model {
  return {
    provider: 'test',
    async call({ messages, signal, on_delta }) {
      const input = messages[0]!.content
      const turn = messages.filter(({ role }) => role === 'assistant').length + 1
      await sql`insert into witness (input, turn, pid) values (${input}, ${turn}, ${process.pid})`
      on_delta?.(`turn ${turn}`)
      // Blocks the event loop without using the processor.
      if (busy_ms > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, busy_ms)
      await delay(call_ms, undefined, { signal }).catch(() => signal.throwIfAborted())
      return {
        text: `turn ${turn} of ${input}`,
        tool_calls: turn < calls ? [{ id: `call_${turn}`, name: 'next', arguments: {} }] : [],
        finish_reason: turn < calls ? 'tool_calls' : 'stop',
        model: 'witness',
        usage: { input_tokens: 1, output_tokens: 1, cached_tokens: 0 },
        network: { bytes_in: 10, bytes_out: 5 },
      }
    },
  }
}

/**
 * Tools that write down every call in `witness`, named after their safety. `hang` in their arguments makes the first call
 * of a key never end: what it did has been done by then.
 */
export function witnessTools(sql: Sql): ToolSource {
  const tool = (safety: ToolSafety): Tool => ({
    name: safety,
    description: `A tool that is ${safety}.`,
    parameters: { type: 'object', properties: { hang: { type: 'boolean' }, note: { type: 'string' } } },
    safety,
    async call({ hang }, { idempotency_key, signal }) {
      await sql`insert into witness (input, turn, pid) values (${idempotency_key}, 0, ${process.pid})`
      const [row] = await sql<{ n: number }>`select count(*) as n from witness where input = ${idempotency_key}`
      if (hang === true && row!.n === 1) await once(signal, 'abort').then(() => signal.throwIfAborted())
      return { content: `call ${row!.n} of ${safety}` }
    },
  })
  const tools = new Map((['safe', 'keyed', 'unsafe'] as const).map((safety) => [safety as string, tool(safety)]))
  for (const name of engineTools) {
    const parameters = { type: 'object' }
    tools.set(name, { name, description: name, parameters, safety: 'safe', call: async () => ({ content: '' }) })
  }
  return { open: async () => ({ tools, missing: [], unreadable: [], secrets: [], close: async () => {} }) }
}

export const witnessTable =
  'create table witness (id bigint generated always as identity, input text, turn int, pid int)'

/** An engine without the rest of the service, on a database of the caller. */
export async function openEngine(
  options: Pick<EngineProcessOptions, 'connection' | 'slots' | 'data_dir'> & {
    model: (sql: Sql) => Model
    models?: ModelSettings | undefined
    tools?: (sql: Sql) => ToolSource
    waitingMax?: number
  },
): Promise<{ engine: Engine; sql: Sql; close(): Promise<void> }> {
  const { connection, slots, data_dir, model, models, tools, waitingMax } = options
  const database = openDatabase({ connection })
  const engine = await startEngine({
    database,
    log: pino({ level: process.env['CADRE_LOG_LEVEL'] ?? 'silent' }),
    models: models ? makeModels(models) : { resolve: (name) => ({ model: model(database.sql), name }) },
    ...(tools ? { tools: tools(database.sql) } : {}),
    waitingMax,
    secrets: makeSecrets('a secret key for tests, 32 characters'),
    config: { worker_slots: slots, tokens_per_hour: 1e12, data_dir },
  })
  await engine.ready
  return {
    engine,
    sql: database.sql,
    async close() {
      await engine.stop()
      await database.close()
    },
  }
}

async function main(options: EngineProcessOptions): Promise<void> {
  const { close } = await openEngine({
    ...options,
    model: (sql) => (options.scripted ? scriptModel : witnessModel(sql, options)),
    ...(options.scripted || options.models ? { tools: witnessTools } : {}),
  })
  process.on('message', () => void close().then(() => process.exit(0)))
  // A worker must not outlive the test that started it.
  process.on('disconnect', () => process.exit(1))
  process.send?.('ready')
}

if (process.argv[1] === self.pathname) await main(JSON.parse(process.argv[2]!) as EngineProcessOptions)
