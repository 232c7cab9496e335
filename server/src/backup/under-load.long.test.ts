import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { load, makeEmptyDatabase, save } from '../../test/backups.ts'
import { isLongRun } from '../../test/long-run.ts'
import { makeRng, testSeed } from '../../test/rng.ts'
import { maker } from '../../test/contract/full-installation.ts'
import { eventually, sender, startOn, startTestService, type TestService } from '../../test/harness.ts'
import type { Sql } from '../platform/postgres/database.ts'

const callers = 6
const backups = isLongRun ? 4 : 1

/** Invariants of any Cadre database at any time: each query returns the rows that violate one. */
const invariants: Record<string, string> = {
  'no task is without its agent': `
    select id from task t where not exists (select from agent a where a.id = t.agent_id)
      and not exists (select from removed_agent r where r.agent_id = t.agent_id)`,
  'events of a task are dense': `
    select t.id from task t left join task_event e on e.task_id = t.id group by t.id, t.last_sequence
    having count(e.sequence) <> t.last_sequence or coalesce(max(e.sequence), 0) <> t.last_sequence`,
  'no event, step or message is without its task': `
    select task_id from task_event e where not exists (select from task t where t.id = e.task_id)
    union all select task_id from task_step s where not exists (select from task t where t.id = s.task_id)
    union all select task_id from task_message m where not exists (select from task t where t.id = m.task_id)`,
  'a finished task has its final event, and holds nothing': `
    select t.id from task t where t.finished_at is not null and (t.hold is not null or t.slot is not null
      or not exists (select from task_event e where e.task_id = t.id and e.sequence = t.last_sequence
        and e.type in ('task.completed', 'task.failed', 'task.canceled', 'task.expired')))`,
  'a version of an agent is kept for each that it had': `
    select a.id from agent a where (select count(*) from agent_version v where v.agent_id = a.id) < a.version`,
  'turns of a thread are numbered without a gap': `
    select thread_id from task where thread_id is not null group by thread_id having max(thread_position) <> count(*)`,
  'who ran a task is not forgotten': `
    select t.id from task t where t.job_id is not null and not exists (select from pgboss.job j where j.id = t.job_id)`,
}

describe('backups under load', () => {
  let test: TestService
  let folder: string
  const rng = makeRng(testSeed())
  let created = 0
  before(async () => {
    test = await startTestService({ CADRE_WORKER_SLOTS: '8' })
    folder = await mkdtemp(join(tmpdir(), 'cadre-under-load-'))
  })
  after(async () => {
    await test.stop()
    await rm(folder, { recursive: true, force: true })
  })

  /** Creates, changes, runs and deletes resources until it is stopped. */
  async function work(project: string, stop: AbortSignal): Promise<void> {
    const [make, mine] = [maker(test.send), rng.fork()]
    const script = JSON.stringify([
      { tool_calls: [{ name: 'current_time', arguments: {} }] },
      { text: 'It is {{tool_result}}.' },
    ])
    const makeAgent = async (): Promise<string> => {
      const { id } = await make(`${project}/agents`, {
        name: `agent-${mine.between(0, 1e9)}`,
        config: { model: 'builtin/script', tools: ['current_time'], system_prompt: script },
      })
      return `${project}/agents/${id}`
    }
    let agent = await makeAgent()
    let thread = (await make(`${project}/threads`, { agent_id: agent.split('/').at(-1) })).id
    while (!stop.aborted) {
      if (mine.happens(0.05)) {
        await test.send('DELETE', agent)
        agent = await makeAgent()
        thread = (await make(`${project}/threads`, { agent_id: agent.split('/').at(-1) })).id
      } else if (mine.happens(0.1)) {
        const { status } = await test.send('PUT', agent, { body: { description: `after ${created}` } })
        assert.equal(status, 200)
      } else if (mine.happens(0.3)) {
        await make(`${agent}/tasks`, { input: 'next', thread_id: thread })
        created += 1
      } else {
        const { id } = await make(`${agent}/tasks`, { input: 'go' })
        created += 1
        if (mine.happens(0.1)) await test.send('POST', `${project}/tasks/${id}/cancel`)
      }
    }
  }

  async function broken(sql: Sql): Promise<Record<string, unknown[]>> {
    const found: Record<string, unknown[]> = {}
    for (const [rule, query] of Object.entries(invariants)) {
      const { rows } = await sql.query(query)
      if (rows.length > 0) found[rule] = rows.slice(0, 3)
    }
    return found
  }

  it('each backup under load is a consistent snapshot whose tasks continue after a restore', async (t) => {
    t.diagnostic(`CADRE_TEST_SEED=${rng.seed}`)
    const { id } = await maker(test.send)('/api/v1/projects', { name: 'busy' })
    const project = `/api/v1/projects/${id}`
    const stop = new AbortController()
    const working = Promise.all(Array.from({ length: callers }, () => work(project, stop.signal)))
    const files: string[] = []
    try {
      for (let i = 1; i <= backups; i += 1) {
        const enough = created + 40
        await eventually(async () => created >= enough, 60_000)
        const file = join(folder, `${i}.tar.gz`)
        const { tables } = await save(test.service.context.database.settings, file)
        files.push(file)
        const rows = (table: string): number => tables.find(({ name }) => name === table)!.rows
        t.diagnostic(
          `${created} tasks created: ${rows('task')} of them and ${rows('task_event')} events in backup ${i}`,
        )
      }
    } finally {
      stop.abort()
      await working
    }

    let moving = 0
    for (const file of files) {
      const to = await makeEmptyDatabase()
      try {
        await load(file, to.connection)
        const service = await startOn(to.connection)
        const { sql } = service.context
        try {
          const send = sender(service.url, test.owner.api_key)
          const [{ n } = { n: 0 }] = await sql<{ n: number }>`
            select count(*) as n from task where status in ('queued', 'running', 'waiting')`
          moving += n
          assert.deepEqual(await broken(sql), {}, file)
          await eventually(async () => {
            const { body } = await send('GET', `${project}/tasks?status=queued&limit=1`)
            const { body: running } = await send('GET', `${project}/tasks?status=running&limit=1`)
            return body.pagination.total === 0 && running.pagination.total === 0
          }, 60_000)
          assert.deepEqual(await broken(sql), {}, `${file}, worked off`)
        } finally {
          await service.stop()
        }
      } finally {
        await to.drop()
      }
    }
    t.diagnostic(`${moving} tasks were under way`)
    assert.ok(moving > 0, 'a backup without running work proves nothing')
  })
})
