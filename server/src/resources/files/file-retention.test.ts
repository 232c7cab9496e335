import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { sweepFiles } from './files.queries.ts'

let test: TestService
let project: string
let agent: string

before(async () => {
  test = await startTestService()
  project = `/api/v1/projects/${(await make('/api/v1/projects', { name: 'kept' })).id}`
  const config = { model: 'builtin/script', tools: ['save_file'] }
  agent = (await make(`${project}/agents`, { name: 'script', config })).id
})
after(() => test.stop())

async function make(path: string, body: unknown, headers: Record<string, string> = {}): Promise<any> {
  const reply = await test.send('POST', path, { body, headers })
  assert.ok(reply.status < 300, JSON.stringify(reply.body))
  return reply.body
}
const upload = async (): Promise<string> =>
  (await make(`${project}/files`, 'kept', { 'content-type': 'text/plain' })).id
const naming = (file_id: string): object[] => [{ role: 'user', content: [{ type: 'file', file_id }] }]
const task = async (input: unknown): Promise<any> => make(`${project}/agents/${agent}/tasks?wait=30`, { input })
const read = (id: string) => test.send('GET', `${project}/files/${id}`)

/** Removes what is due, for files of which everything happened so long ago. */
async function sweepAfter(days: number, id: string): Promise<number> {
  await test.sql`
    update file set created_at = created_at - make_interval(days => ${days}), named_at = named_at - make_interval(days => ${days})
    where id = ${id}`
  await sweepFiles(test.sql)
  return (await read(id)).status
}

describe('a file is kept', () => {
  it('a file is kept as long as a task that names it, however old the file is', async () => {
    const id = await upload()
    const [one, other] = [await task(naming(id)), await task(naming(id))]
    assert.equal((await read(id)).body.expires_at, null)
    assert.equal(await sweepAfter(100, id), 200)
    await test.sql`delete from task where id = ${one.id}`
    assert.equal(await sweepAfter(1, id), 200)
    await test.sql`delete from task where id = ${other.id}`
    assert.equal(await sweepAfter(1, id), 404)
  })

  it('an artifact is kept as long as its task', async () => {
    const call = { name: 'save_file', arguments: { name: 'made.txt', content: 'made' } }
    const made = await task(JSON.stringify([{ tool_calls: [call] }, { text: 'Done.' }]))
    const [{ file_id }] = made.output.artifacts
    assert.equal(await sweepAfter(100, file_id), 200)
    await test.sql`delete from task where id = ${made.id}`
    assert.equal(await sweepAfter(1, file_id), 404)
  })

  it('a file is kept while a schedule or a test case names it', async () => {
    for (const [path, rest] of [
      [`${project}/schedules`, { agent_id: agent, cron: '0 3 * * *' }],
      [`${project}/agents/${agent}/test-cases`, {}],
    ] as const) {
      const id = await upload()
      const keeper = await make(path, { name: 'keeper', input: naming(id), ...rest })
      assert.equal(await sweepAfter(31, id), 200, path)
      assert.equal((await test.send('DELETE', `${path}/${keeper.id}`)).status, 200)
      assert.equal(await sweepAfter(1, id), 404, path)
    }
  })
})
