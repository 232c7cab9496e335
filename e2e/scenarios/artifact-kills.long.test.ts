import assert from 'node:assert/strict'
import { after, before, it } from 'node:test'
import type pg from 'pg'
import { maker } from '../../server/test/contract/full-installation.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { startProcess, type RunningService } from '../process.ts'
import { api_key, makeInstallations, type Installations } from './installations.ts'

let installations: Installations
let env: Record<string, string>
let client: pg.Client
let service: RunningService
let project: { id: number }
let path: string

before(async () => {
  installations = await makeInstallations()
  const external = await installations.external()
  client = external.client
  env = { ...external.env, PORT: '0', CADRE_METRICS_PORT: 'off' }
  service = await startProcess(env)
  const send = sender(service.url, api_key)
  project = await maker(send)('/api/v1/projects', { name: 'kills' })
  const agents = `/api/v1/projects/${project.id}/agents`
  const config = { model: 'builtin/script', tools: ['save_file', 'run_javascript'] }
  const agent = await maker(send)(agents, { name: 'saver', config })
  await eventually(async () => (await send('GET', `${agents}/${agent.id}`)).body.status === 'running')
  path = `${agents}/${agent.id}/tasks`
})
after(async () => {
  await service.end()
  await installations.close()
})

const line = 'artifact '
/** Of the file: that of a program is more than one piece. */
const times = { save_file: 50_000, run_javascript: 150_000 }
const calls = {
  save_file: { name: 'save_file', arguments: { name: 'kept.txt', content: line.repeat(times.save_file) } },
  run_javascript: {
    name: 'run_javascript',
    arguments: {
      code: `files.save('kept.txt', '${line}'.repeat(${times.run_javascript})); files.save('kept.txt', 'another')`,
    },
  },
}
const files = async (): Promise<{ whole: number; begun: number }> => {
  const { rows } = await client.query(
    'select count(*) filter (where sha256 is not null)::int as whole, count(*) filter (where sha256 is null)::int as begun from file',
  )
  return rows[0]
}

/** Ends what the killed service left in PostgreSQL, and returns how many sessions that were. */
const endOtherSessions = async (): Promise<number> => {
  // A transaction sees the sessions as it first looked at them.
  await client.query('select pg_stat_clear_snapshot()')
  const { rows } = await client.query(`select count(pg_terminate_backend(pid))::int as n from pg_stat_activity
    where backend_type = 'client backend' and pid <> pg_backend_pid() and datname = current_database()`)
  return rows[0].n
}

for (const [tool, artifacts] of [
  ['save_file', 1],
  ['run_javascript', 2],
] as const)
  for (const moment of ['while its bytes are stored', 'between the file and the journal'] as const)
    it(`what ${tool} saved is there once after a kill -9 ${moment}`, async () => {
      await client.query('delete from file')
      const lockOfFiles = `hashtextextended('files of project ${project.id}', 0)`
      await client.query(`select pg_advisory_lock(${lockOfFiles})`)
      const input = JSON.stringify([{ tool_calls: [calls[tool]] }, { text: 'done' }])
      const { body: task } = await sender(service.url, api_key)('POST', path, { body: { input } })
      await eventually(async () => (await files()).begun === 1)
      if (moment === 'between the file and the journal') {
        // The journal cannot be written while this holds the task; the file's reference to it can.
        await client.query('begin')
        await client.query('select from task where id = $1 for no key update', [task.id])
        await client.query(`select pg_advisory_unlock(${lockOfFiles})`)
        await eventually(async () => (await files()).whole === artifacts)
        await service.end('SIGKILL')
        // A write that was sent before would be made although its process is gone.
        await eventually(async () => (await endOtherSessions()) === 0)
        await client.query('rollback')
      } else {
        await service.end('SIGKILL')
        await client.query(`select pg_advisory_unlock(${lockOfFiles})`)
      }
      service = await startProcess(env)
      const send = sender(service.url, api_key)
      const one = `/api/v1/projects/${project.id}/tasks/${task.id}`
      const body: any = await eventually(async () => {
        const answer = await send('GET', `${one}?wait=60`)
        return answer.body.status === 'completed' && answer.body
      })
      assert.deepEqual([body.status, body.output.artifacts?.length], ['completed', artifacts])
      assert.deepEqual(await files(), { whole: artifacts, begun: 0 })
      assert.deepEqual((await send('GET', `${one}/artifacts`)).body.artifacts, body.output.artifacts)
      const { body: log } = await send('GET', `${one}/events?limit=100`)
      const published = log.events.filter(({ type }: { type: string }) => type === 'artifact.created')
      assert.equal(published.length, artifacts)
      const { body: journal } = await send('GET', `${one}/steps`)
      assert.equal(journal.steps.find(({ type }: { type: string }) => type === 'tool_call').attempt, 2)
      const [artifact] = body.output.artifacts
      const url = `${service.url}/api/v1/projects/${project.id}/files/${artifact.file_id}/content`
      assert.equal(await (await fetch(url, { headers: { 'x-api-key': api_key } })).text(), line.repeat(times[tool]))
    })
