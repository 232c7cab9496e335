import { createWriteStream } from 'node:fs'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { readArchive } from '../server/src/backup/archive-reader.ts'
import { backUp } from '../server/src/backup/back-up.ts'
import { restore } from '../server/src/backup/restore.ts'
import { openConnection } from '../server/src/platform/postgres/connection.ts'
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '../server/src/platform/embedded-postgres/embedded-postgres.ts'
import { migrate } from '../server/src/platform/postgres/migrate.ts'
import { insertTestAgent } from '../server/test/fixtures.ts'
import { load, machine } from './figures.ts'
import { readOptions } from './parts/options.ts'

/**
 * The restore drill, measured: how long a backup takes, how large it is, and how long it takes to come back. Two embedded
 * PostgreSQL with their ordinary durability, tasks of one model call and one tool call with all that is kept of them.
 *
 *     node bench/backup.ts --tasks 100000
 */
const values = readOptions({ tasks: { type: 'string', default: '100000' } })
const tasks = Number(values.tasks)
const signal = new AbortController().signal
const log = pino({ level: 'warn' })
const folder = await mkdtemp(join(tmpdir(), 'cadre-bench-'))
const servers: EmbeddedPostgres[] = []
try {
  console.log(`${tasks} tasks. Before: ${machine()}.\n`)
  const from = await startServer('from')
  const { size, rows } = await fill(from)
  const file = join(folder, 'backup.tar.gz')
  const figures: [string, string][] = [
    ['Rows', rows.toLocaleString('en-US')],
    ['Database, MB', megabytes(size)],
  ]
  const measure = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    const [began_ms, before] = [performance.now(), process.cpuUsage()]
    await work()
    const { user, system } = process.cpuUsage(before)
    figures.push([`${what}, s`, ((performance.now() - began_ms) / 1000).toFixed(1)])
    figures.push([`${what}, processor time of Node, s`, ((user + system) / 1e6).toFixed(1)])
  }
  const { connection } = from
  await measure('Backup', () => backUp({ connection, output: createWriteStream(file), cadre_version: 'bench', signal }))
  figures.push(['Archive, MB', megabytes((await stat(file)).size)])
  let content: Awaited<ReturnType<typeof readArchive>> | undefined
  await measure('Check of the archive', async () => (content = await readArchive(file)))
  const to = await startServer('to')
  await measure('Restore after the check', () =>
    restore({ file, content: content!, connection: to.connection, log, signal }),
  )
  console.log('| | |\n|---|---|')
  for (const [name, value] of figures) console.log(`| ${name} | ${value} |`)
  console.log(
    `\nAfter: load ${load().toFixed(2)}, at most ${megabytes(process.resourceUsage().maxRSS * 1024)} MB in memory.`,
  )
} finally {
  for (const server of servers) await server.stop()
  await rm(folder, { recursive: true, force: true })
}

async function startServer(name: string): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ data_dir: join(folder, name), log })
  servers.push(server)
  return server
}

/** Tasks with their events, steps and logs, spread over the month. */
async function fill({ connection }: EmbeddedPostgres): Promise<{ size: number; rows: number }> {
  const { sql, close } = await openConnection({ connection })
  try {
    await migrate(sql)
    const agent = await insertTestAgent(sql)
    const text = `(select string_agg(md5(random()::text), ' ') from generate_series(1, 6 + n % 20))`
    await sql.script(`
      create temp table new_task as select 'task_' || substr(id_floor('task', now()), 6, 10) || lpad(n::text, 16, '0') as id, n,
        ${text} as input, ${text} as output from generate_series(1, ${tasks}) n;
      insert into task (id, project_id, agent_id, agent_version, status, input, output, max_attempts, usage, created_by, last_sequence, attempt, started_at, finished_at)
        select id, ${agent.project_id}, '${agent.id}', 0, 'completed', to_jsonb(input), jsonb_build_object('content', output), 3,
          '{"input_tokens": 120, "output_tokens": 80, "cached_tokens": 0, "steps": 3, "tool_calls": 1, "cost_usd": 0.0012, "by_model": {}}',
          'user_1', 10, 1, now(), now() from new_task;
      insert into task_event (task_id, sequence, type, data)
        select id, s, 'step.completed', jsonb_build_object('step_id', 'step_' || md5(id || s), 'index', s, 'type', 'model_call', 'duration_ms', n % 977)
        from new_task, generate_series(1, 10) s;
      insert into task_step (task_id, index, id, agent_id, type, status, attempt, name, input, output, model, finished_at)
        select id, s, 'step_' || md5(id || s), '${agent.id}', 'model_call', 'completed', 1, 'turn ' || s, jsonb_build_object('messages', s),
          jsonb_build_object('text', output), 'provider/model', now() from new_task, generate_series(0, 2) s;
      insert into agent_log (id, agent_id, task_id, level, message, context)
        select 'log_' || md5(id || s), '${agent.id}', id, 'info', 'Task completed', jsonb_build_object('task_id', id, 'n', n)
        from new_task, generate_series(1, 3) s;
      insert into event (id, org_id, type, data, matched_at)
        select 'evt_' || substr(id, 6), 'org_1', 'agent.completed', jsonb_build_object('task', jsonb_build_object('id', id, 'n', n)), now() from new_task;
      analyze`)
    const [row] = await sql<{ size: number }>`select pg_database_size(current_database()) as size`
    return { size: row!.size, rows: tasks * (1 + 10 + 3 + 3 + 1) }
  } finally {
    await close()
  }
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(1)
}
