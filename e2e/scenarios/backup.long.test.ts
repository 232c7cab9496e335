import assert from 'node:assert/strict'
import { cp, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { maker } from '../../server/test/contract/full-installation.ts'
import { type FakeModelServer, startFakeModelServer } from '../../server/test/fake-models/fake-model-server.ts'
import { answersGiven } from '../../server/test/fake-models/fake-chat-messages.ts'
import { eventually, sender } from '../../server/test/harness.ts'
import { api_key, makeInstallations, otherKey, refuse, succeed, type Installations } from './installations.ts'
import { startProcess } from '../process.ts'

let installations: Installations
let folder: string
let models: FakeModelServer
before(async () => {
  models = await startFakeModelServer()
  models.always((request) =>
    answersGiven(request.body) > 0
      ? { do: 'answer', text: 'Done.' }
      : {
          do: 'answer',
          reasoning: [{ encrypted: 'reasoning-that-is-kept' }],
          tool_calls: [{ name: 'run_javascript', arguments: { code: '1' } }],
        },
  )
  installations = await makeInstallations()
  folder = installations.folder
})
after(async () => {
  await installations.close()
  await models.close()
})

const embedded = (name: string): Record<string, string> => installations.embedded(name)
/** On a PostgreSQL of the operator's, which costs less where the test is not about the database. */
const external = async (name: string): Promise<Record<string, string>> => ({
  ...(await installations.external()).env,
  CADRE_DATA_DIR: join(folder, name),
})

/** Something that can be recognized, and a task that goes on when a person approves. */
interface Work {
  project: string
  task_id: string
  approval_id: string
  /** The same of a model that reasons. */
  thinker: { task_id: string; approval_id: string }
}

async function begin(url: string): Promise<Work> {
  const send = sender(url, api_key)
  const make = maker(send)
  const { id } = await make('/api/v1/projects', { name: 'kept' })
  const project = `/api/v1/projects/${id}`
  const { id: agent_id } = await make(`${project}/agents`, {
    name: 'asks',
    config: {
      model: 'builtin/script',
      tools: ['run_javascript'],
      tool_policies: { run_javascript: 'ask' },
      environment_variables: { FACTOR: '7' },
      system_prompt: JSON.stringify([
        { tool_calls: [{ name: 'run_javascript', arguments: { code: '6 * env.FACTOR' } }] },
        { text: 'It is {{tool_result}}.' },
      ]),
    },
  })
  const { id: task_id } = await make(`${project}/agents/${agent_id}/tasks`, { input: 'go' })
  const approval_id = await eventually(async () => {
    const { body } = await send('GET', `${project}/tasks/${task_id}`)
    return body.wait?.approval_ids[0]
  }, 30_000)
  const { id: thinker_id } = await make(`${project}/agents`, {
    name: 'thinks',
    config: { model: 'openai/gpt-5.6-sol', tools: ['run_javascript'], tool_policies: { run_javascript: 'ask' } },
  })
  const thinking = await make(`${project}/agents/${thinker_id}/tasks?wait=30`, { input: 'go' })
  const thinker = { task_id: thinking.id, approval_id: thinking.wait.approval_ids[0] }
  return { project, task_id, approval_id, thinker }
}

async function finish(url: string, { project, task_id, approval_id, thinker }: Work): Promise<void> {
  const send = sender(url, api_key)
  await maker(send)(`${project}/approvals/${approval_id}/resolve`, { decision: 'approve' })
  const { body } = await send('GET', `${project}/tasks/${task_id}?wait=30`)
  assert.deepEqual([body.status, body.output?.content], ['completed', 'It is 42.'])
  await maker(send)(`${project}/approvals/${thinker.approval_id}/resolve`, { decision: 'approve' })
  const thought = await send('GET', `${project}/tasks/${thinker.task_id}?wait=30`)
  assert.deepEqual([thought.body.status, thought.body.error], ['completed', null])
  assert.ok(
    JSON.stringify(models.requests.at(-1)!.body).includes('reasoning-that-is-kept'),
    'it goes back after a restore',
  )
  const { id } = await maker(send)('/api/v1/projects', { name: 'new' })
  assert.equal(id, Number(project.split('/').at(-1)) + 1)
}

async function serving(env: Record<string, string>, work: (url: string) => Promise<void>): Promise<void> {
  const service = await startProcess({
    ...env,
    OPENAI_API_KEY: 'sk-fake',
    OPENAI_BASE_URL: models.base_url,
    OPENAI_PROTOCOL: 'responses',
  })
  try {
    await work(service.url)
  } finally {
    assert.deepEqual(await service.end(), { code: 0, signal: null })
  }
}

describe('an installation that moves by its backup', () => {
  let work: Work
  let file: string
  const first = (): Record<string, string> => embedded('first')
  /** What an operator keeps beside the backup. */
  const withKey = async (env: Record<string, string>): Promise<void> => {
    await mkdir(env['CADRE_DATA_DIR']!, { recursive: true })
    await cp(join(folder, 'first', 'secret.key'), join(env['CADRE_DATA_DIR']!, 'secret.key'))
  }

  it('a backup of a running service has a new name and is readable only by its owner', async () => {
    await mkdir(join(folder, 'kept'))
    await serving(first(), async (url) => {
      work = await begin(url)
      const { stdout, stderr } = await succeed(first(), ['backup', '--output', join(folder, 'kept')])
      file = stdout.trim()
      assert.match(file, /\/kept\/cadre-backup-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.tar\.gz$/)
      assert.deepEqual(await readdir(join(folder, 'kept')), [file.split('/').at(-1)])
      assert.match(stderr, /^Saved \d+ rows as of \d{4}-.+Z in [\d.]+ s, [\d.]+ MB\.$/m)
      assert.match(stderr, /^The secret key \([0-9a-f]{8}\) is not in the backup\. Keep a copy of it/m)
      assert.equal((await stat(file)).mode & 0o777, 0o600)
      assert.ok(!(await readFile(file)).includes(await readFile(join(folder, 'first', 'secret.key'))))
      // The service goes on.
      assert.equal((await sender(url, api_key)('GET', work.project)).status, 200)
    })
  })

  it('a backup is described without a database', async () => {
    const { stdout } = await succeed({ DATABASE_URL: 'postgres://unknown@127.0.0.1:1/nowhere' }, [
      'restore',
      '--check',
      file,
    ])
    assert.match(
      stdout,
      /^Complete backup of \d{4}-.+Z, by Cadre \d.+ on PostgreSQL \d.+\n {2}Schema +\d{4}_\w+\.sql\n {2}Data +[\d,]+ rows/,
    )
  })

  it('an installation is restored into a new folder, and its service continues its task', async () => {
    const env = embedded('second')
    await withKey(env)
    const { stdout, stderr } = await succeed(env, ['restore', file])
    assert.equal(stdout, '')
    assert.match(stderr, /^Restored \d+ rows as of .+Z in [\d.]+ s\. \d+ tasks continue when the service starts\.$/m)
    await serving(env, (url) => finish(url, work))
  })

  it('an installation moves by backups to the PostgreSQL of an operator and back into an embedded one', async () => {
    const { env } = await installations.external()
    const outside = { ...env, CADRE_SECRET_KEY: (await readFile(join(folder, 'first', 'secret.key'), 'utf8')).trim() }
    await succeed(outside, ['restore', file])
    await serving(outside, async (url) => {
      assert.equal((await sender(url, api_key)('GET', `${work.project}/tasks/${work.task_id}`)).body.status, 'waiting')
      await succeed(outside, ['backup', '-o', join(folder, 'outside.tar.gz')])
    })
    const back = embedded('back')
    await withKey(back)
    await succeed(back, ['restore', join(folder, 'outside.tar.gz')])
    await serving(back, (url) => finish(url, work))
  })

  it('an installation is also backed up while its service does not run', async () => {
    const { stdout } = await succeed(first(), ['backup', '-o', join(folder, 'still.tar.gz'), '--quiet'])
    assert.equal(stdout, `${join(folder, 'still.tar.gz')}\n`)
    await succeed({}, ['restore', '--check', join(folder, 'still.tar.gz')])
  })

  it('a restore overwrites neither an existing folder nor one that a service uses', async () => {
    await refuse(first(), ['restore', file], /^The database is not empty \(.+\), and a restore never overwrites\./)
    await serving(first(), () =>
      refuse(first(), ['restore', file], /^The data folder \S+ is in use by process \d+, which started at/),
    )
  })

  it('a restore without the secret key, or with another one, creates nothing', async () => {
    const env = embedded('without key')
    await refuse(
      env,
      ['restore', file],
      /encrypted with the key [0-9a-f]{8}, and no secret key was found\..+CADRE_SECRET_KEY/,
    )
    await refuse(
      { ...env, CADRE_SECRET_KEY: otherKey },
      ['restore', file],
      /encrypted with the key [0-9a-f]{8}, and CADRE_SECRET_KEY is the key [0-9a-f]{8}\./,
    )
    await assert.rejects(stat(env['CADRE_DATA_DIR']!), { code: 'ENOENT' })
  })

  it('a backup contains the secret key only if requested, with a warning', async () => {
    const [env, withIt] = [embedded('with key'), join(folder, 'with-key.tar.gz')]
    const { stderr } = await succeed(first(), ['backup', '-o', withIt, '--include-secret-key', '-q'])
    assert.equal(stderr, 'The backup contains the secret key. Protect the file like the key.\n')
    await refuse(
      { ...first(), CADRE_SECRET_KEY: otherKey },
      ['backup', '-o', join(folder, 'wrong.tar.gz'), '--include-secret-key'],
      /is not that of the database/,
    )
    assert.match(
      (await succeed(env, ['restore', withIt])).stderr,
      /secret key from the backup was written to \S.*secret\.key\./,
    )
    assert.equal((await stat(join(env['CADRE_DATA_DIR']!, 'secret.key'))).mode & 0o777, 0o600)
    await serving(env, (url) => finish(url, work))
  })

  it('a restore can be rehearsed beside the running service without doing anything twice', async () => {
    const env = await external('rehearsal')
    await withKey(env)
    const { stderr } = await succeed(env, ['restore', file, '--rehearsal'])
    assert.match(stderr, /For a rehearsal: agents and schedules are paused, webhooks disabled\.$/m)
    await serving(env, async (url) => {
      const send = sender(url, api_key)
      await maker(send)(`${work.project}/approvals/${work.approval_id}/resolve`, { decision: 'approve' })
      const { body } = await send('GET', `${work.project}/tasks/${work.task_id}?wait=2`)
      assert.deepEqual([body.status, body.wait.reason], ['waiting', 'agent_paused'])
    })
  })

  it('an installation whose key is lost is restored without its secrets, and the missing ones are listed', async () => {
    const env = await external('lost key')
    const { stderr } = await succeed(env, ['restore', file, '--without-secrets'])
    assert.match(stderr, /^Agents without their environment variables: asks$/m)
    await serving(env, async (url) => {
      const send = sender(url, api_key)
      await maker(send)(`${work.project}/approvals/${work.approval_id}/resolve`, { decision: 'approve' })
      const { body } = await send('GET', `${work.project}/tasks/${work.task_id}?wait=30`)
      assert.deepEqual([body.status, body.output?.content], ['completed', 'It is null.'])
    })
  })
})
