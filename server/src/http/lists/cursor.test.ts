import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { createProject } from '../../../test/fixtures.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { newId } from '../../platform/ids.ts'

/** A list with cursors, and how to add an entry that is sorted before all others. */
interface Listed {
  name: string
  path: string
  member: string
  /** What identifies an entry. */
  key: (entry: any) => unknown
  /** Absent if new entries are always at the end. */
  add?: () => Promise<void>
}

describe('a list with cursors', () => {
  let test: TestService
  const lists: Listed[] = []
  before(async () => {
    test = await startTestService({ CADRE_DEFAULT_MODEL: 'builtin/echo' })
    const project = await createProject(test.send, 'cursors')
    const { body: agent } = await test.send('POST', `${project.path}/agents`, { body: { name: 'echo' } })
    const at = `${project.path}/agents/${agent.id}`
    const giveTask = async (): Promise<string> => {
      const { status, body } = await test.send('POST', `${at}/tasks?wait=60`, { body: { input: 'the same' } })
      assert.deepEqual([status, body.status], [201, 'completed'], JSON.stringify(body))
      return body.id
    }
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push(await giveTask())
    const log = async (): Promise<void> => {
      // Two with the same timestamp, which is between two milliseconds.
      for (let n = 0; n < 2; n++)
        await test.sql`
          insert into agent_log (id, agent_id, timestamp, level, message)
          values (${newId('log')}, ${agent.id}, date_trunc('second', now()) + interval '1 second 123456 microseconds', 'info', 'the same')`
    }
    for (let n = 0; n < 3; n++) await log()
    const { body: webhook } = await test.send('POST', '/api/v1/webhooks', {
      body: { url: 'https://hooks.invalid/', events: ['project.deleted'], secret: 'canary' },
    })
    const deliver = async (): Promise<void> => {
      await test.sql`
        insert into delivery (id, webhook_id, org_id, event_id, event, status, failure, attempts, round_attempts, created_at, finished_at)
        values (${newId('dlv')}, ${webhook.id}, ${test.owner.org_id}, ${newId('evt')}, 'agent.failed', 'failed', 'gone', 1, 1, now(), now())`
    }
    for (let n = 0; n < 5; n++) await deliver()
    const add = async (): Promise<void> => void (await giveTask())
    const byId = ({ id }: { id: string }) => id
    const byWords = (entry: object) => JSON.stringify(entry)
    lists.push(
      { name: 'tasks of a project', path: `${project.path}/tasks?`, member: 'tasks', key: byId, add },
      { name: 'tasks of an agent', path: `${at}/tasks?`, member: 'tasks', key: byId, add },
      { name: 'searched tasks', path: `${project.path}/tasks?search=SAME`, member: 'tasks', key: byId, add },
      { name: 'tasks, upwards', path: `${project.path}/tasks?sort=created_at`, member: 'tasks', key: byId },
      {
        name: 'events',
        path: `${project.path}/tasks/${ids[0]}/events?`,
        member: 'events',
        key: ({ sequence }) => sequence,
      },
      { name: 'the log of an agent', path: `${at}/logs?`, member: 'logs', key: byWords, add: log },
      { name: 'a searched log', path: `${at}/logs?search=SAME`, member: 'logs', key: byWords, add: log },
      { name: 'the log of a task', path: `${project.path}/logs?task_id=${ids[0]}`, member: 'logs', key: byWords },
      { name: 'logs of a project', path: `${project.path}/logs?level=info`, member: 'logs', key: byWords, add: log },
      { name: 'searched logs', path: `${project.path}/logs?search=SAME`, member: 'logs', key: byWords, add: log },
      {
        name: 'deliveries',
        path: `/api/v1/webhooks/${webhook.id}/deliveries?status=failed`,
        member: 'deliveries',
        key: byId,
        add: deliver,
      },
    )
  })
  after(() => test.stop())

  const get = async (path: string) => {
    const { status, body } = await test.send('GET', path)
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`)
    return body
  }

  it('a list with cursors returns every entry once and in order, while entries are added before them', async () => {
    for (const { name, path, member, key, add } of lists) {
      const whole = (await get(`${path}&limit=100`))[member].map(key)
      assert.ok(whole.length > 1, name)
      const found: unknown[] = []
      let cursor: string | null = null
      let pages = 0
      do {
        const body: any = await get(`${path}&limit=2${cursor === null ? '' : `&cursor=${cursor}`}`)
        const { next_cursor, has_more, has_next, total } = body.pagination
        assert.equal(has_more ?? has_next, next_cursor !== null, name)
        assert.ok(total >= whole.length, name)
        found.push(...body[member].map(key))
        cursor = next_cursor
        if (pages < 3) await add?.()
      } while (cursor !== null && ++pages < 100)
      assert.deepEqual(found, whole, name)
    }
  })

  it('a cursor keeps its position after its entry was deleted', async () => {
    const { path } = lists[0]!
    const { tasks, pagination } = await get(`${path}&limit=2`)
    const rest = await get(`${path}&cursor=${pagination.next_cursor}`)
    await test.send('DELETE', `${path.slice(0, -1)}/${tasks[1].id}`)
    assert.deepEqual((await get(`${path}&cursor=${pagination.next_cursor}`)).tasks, rest.tasks)
  })

  it('a list refuses a cursor that it did not return, and a cursor together with an offset or a page', async () => {
    const cursors = await Promise.all(
      lists.map(async ({ path }) => String((await get(`${path}&limit=1`)).pagination.next_cursor)),
    )
    const forged = [
      'x',
      'bnVsbA',
      '%F0%9F%98%80',
      ...[1e300, [9e15, 'log_1'], {}, 'task_1'].map((key) => Buffer.from(JSON.stringify(key)).toString('base64url')),
    ]
    for (const [i, { name, path, member }] of lists.entries()) {
      const foreign = cursors.filter((_, n) => lists[n]!.member !== member)
      for (const cursor of [...forged, ...foreign]) {
        const { status, body } = await test.send('GET', `${path}&cursor=${cursor}`)
        assert.equal(status, 400, `${name} ${cursor}`)
        assert.match(body.error.message, /cursor/)
      }
      const other = member === 'deliveries' ? 'page=1' : 'offset=0'
      const { status, body } = await test.send('GET', `${path}&cursor=${cursors[i]}&${other}`)
      assert.equal(status, 400, name)
      assert.match(body.error.message, /together/)
    }
  })
})
