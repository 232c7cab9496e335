import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import type pg from 'pg'
import { pino } from 'pino'
import type { Model } from '../../server/src/engine/models/model.ts'
import { makeModels, type Models } from '../../server/src/engine/models/models.ts'
import { startEngine } from '../../server/src/engine/start.ts'
import { makeSandboxes } from '../../server/src/engine/tools/sandbox/sandbox.ts'
import { makeTools } from '../../server/src/engine/tools/tools.ts'
import { openDatabase } from '../../server/src/platform/postgres/database.ts'
import { makeEgress } from '../../server/src/platform/egress/safe-fetch.ts'
import { makeSecrets } from '../../server/src/platform/crypto/secrets.ts'

/** What a service without its API is started with. */
export interface WorkerOptions {
  connection: pg.ClientConfig
  slots: number
  /** The data folder: a successor that uses it knows that its predecessor is dead. */
  data_dir: string
  secret_key: string
  /** Where the model `fake/…` answers. */
  model_url: string
}

const self = new URL(import.meta.url)

/**
 * Starts a process that does all that a service does with tasks, and nothing else: it starts in a fraction of the time,
 * so that it can be killed many times. Resolves when it works; rejects where it ended before. Its first message after
 * that says that a model has answered it.
 */
export async function startWorker(options: WorkerOptions, env: Record<string, string>): Promise<ChildProcess> {
  const child = fork(self, [JSON.stringify(options)], {
    execArgv: [],
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const ended = once(child, 'exit').then(([code, signal]) => `ended with ${String(code ?? signal)}`)
  const said = await Promise.race([once(child, 'message').then(([message]) => String(message)), ended])
  if (said !== 'ready') throw new Error(`a worker ${said}`)
  return child
}

async function main({ connection, slots, data_dir, secret_key, model_url }: WorkerOptions): Promise<void> {
  // Loaded with the first call otherwise, which takes as long as many a worker lives.
  await import('@ai-sdk/openai-compatible')
  const log = pino({ level: process.env['CADRE_LOG_LEVEL'] ?? 'silent' })
  const database = openDatabase({ connection, connectionsMax: 6 })
  const secrets = makeSecrets(secret_key)
  const models = makeModels({ providers: [{ name: 'fake', base_url: model_url }], default_model: 'fake/model' })
  const engine = await startEngine({
    database,
    log,
    secrets,
    models: tellingWhenAnswered(models, () => process.send?.('answered')),
    tools: makeTools({
      sql: database.sql,
      secrets,
      egress: makeEgress({ allow: ['loopback'] }),
      log,
      sandboxes: makeSandboxes(log),
    }),
    config: { worker_slots: slots, tokens_per_hour: 1e12, data_dir },
  })
  // A worker must not outlive the test that started it.
  process.on('disconnect', () => process.exit(1))
  await engine.ready
  process.send?.('ready')
  // Else it would be written at the end of the process, which never comes.
  flushCompileCache()
}

function tellingWhenAnswered(models: Models, tell: () => void): Models {
  let hasReported = false
  return {
    ...models,
    resolve(full) {
      const { model, name } = models.resolve(full)
      const call: Model['call'] = async (request) => {
        const answer = await model.call(request)
        if (!hasReported) tell()
        hasReported = true
        return answer
      }
      return { name, model: { ...model, call } }
    },
  }
}

if (process.argv[1] === self.pathname) await main(JSON.parse(process.argv[2]!) as WorkerOptions)
