import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { makeKey, makePerson, ownerOf } from '../../../test/actors.ts'
import { startFakeModelServer, type FakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { startMcpServer, tool as servedTool } from '../../../test/fakes/mcp-server.ts'
import { registerWebhook } from '../../../test/webhooks.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'
import { createProject } from '../../../test/fixtures.ts'

let test: TestService
let models: FakeModelServer
let project: string
const agents: Record<string, string> = {}

const protocols = { responses: 'openai/gpt-4.1', chat: 'plain/some-model', messages: 'anthropic/claude-sonnet-4-5' }
const fileTools = ['read_file', 'save_file', 'run_javascript', 'http_request']

before(async () => {
  models = await startFakeModelServer()
  test = await startTestService({
    OPENAI_API_KEY: 'sk-fake',
    OPENAI_BASE_URL: models.base_url,
    OPENAI_PROTOCOL: 'responses',
    ANTHROPIC_API_KEY: 'sk-fake',
    ANTHROPIC_BASE_URL: models.base_url,
    CADRE_PROVIDER_PLAIN_BASE_URL: models.base_url,
    CADRE_EGRESS_ALLOW: 'loopback',
  })
  const made = await test.send('POST', '/api/v1/projects', { body: { name: 'artifacts' } })
  project = `/api/v1/projects/${made.body.id}`
  await agent('script', 'builtin/script', fileTools)
})
after(async () => {
  await test.stop()
  await models.close()
})

async function agent(name: string, model: string, tools: string[]): Promise<void> {
  const { body } = await test.send('POST', `${project}/agents`, { body: { name, config: { model, tools } } })
  agents[name] = body.id
}

/** A task that plays a script of calls, each the name of a tool and its arguments, and then says the last result. */
async function play(...calls: [string, object][]): Promise<any> {
  const steps = calls.map(([name, args]) => ({ tool_calls: [{ name, arguments: args }] }))
  const input = JSON.stringify([...steps, { text: '{{tool_result}}' }])
  const reply = await test.send('POST', `${project}/agents/${agents.script}/tasks?wait=30`, { body: { input } })
  assert.deepEqual([reply.status, reply.body.error], [201, null], JSON.stringify(reply.body))
  return reply.body
}
const result = async (...calls: [string, object][]): Promise<string> => (await play(...calls)).output.content
const javascript = (code: string): Promise<any> => play(['run_javascript', { code }])

async function upload(bytes: Uint8Array<ArrayBuffer> | string, name: string, type = 'text/plain'): Promise<string> {
  const response = await fetch(new URL(`${project}/files?name=${name}`, test.url), {
    method: 'POST',
    headers: { 'x-api-key': test.owner.api_key, 'content-type': type },
    body: bytes,
  })
  return ((await response.json()) as { id: string }).id
}
async function download(id: string): Promise<Buffer> {
  const headers = { 'x-api-key': test.owner.api_key }
  const response = await fetch(new URL(`${project}/files/${id}/content`, test.url), { headers })
  assert.equal(response.status, 200)
  return Buffer.from(await response.bytes())
}
const digestOf = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('save_file', () => {
  it('save_file creates an artifact, which is in the output, the list, the events and the webhooks', async () => {
    await registerWebhook(test, 'https://hooks.example.com/', { events: ['task.completed', 'agent.completed'] })
    const content = 'a,b\n1,é\n'
    const task = await play(['save_file', { name: '../report.csv', media_type: 'text/csv', content }])
    const [artifact] = task.output.artifacts
    const { file_id, ...facts } = artifact
    assert.deepEqual(facts, { name: '..report.csv', media_type: 'text/csv', bytes: 9, sha256: digestOf(content) })
    assert.equal((await download(file_id)).toString(), content)
    assert.deepEqual(JSON.parse(task.output.content), artifact, 'the model reads the same')
    const { body: list } = await test.send('GET', `${project}/tasks/${task.id}/artifacts`)
    assert.deepEqual(list, { artifacts: [artifact] })
    const { body: read } = await test.send('GET', `${project}/tasks/${task.id}`)
    assert.deepEqual(read.output.artifacts, [artifact])
    const { body: file } = await test.send('GET', `${project}/files/${file_id}`)
    assert.deepEqual([file.task_id, file.created_by, file.expires_at], [task.id, test.owner.user_id, null])
    assert.equal((await test.send('GET', `${project}/files?task_id=${task.id}`)).body.pagination.total, 1)

    const { body: log } = await test.send('GET', `${project}/tasks/${task.id}/events?limit=100`)
    const published = log.events.filter(({ type }: { type: string }) => type === 'artifact.created')
    const { body: journal } = await test.send('GET', `${project}/tasks/${task.id}/steps`)
    const step = journal.steps.find(({ type }: { type: string }) => type === 'tool_call')
    assert.deepEqual(
      published.map(({ data }: any) => data),
      [{ step_id: step.id, ...artifact }],
    )
    assert.deepEqual(log.events.at(-1).data.output.artifacts, [artifact])
    const sent = await test.sql<{ type: string; data: any }>`
      select type, data from event where type in ('task.completed', 'agent.completed') and data::text like ${`%${task.id}%`} order by type`
    assert.deepEqual(
      sent.map(({ type, data }) => [type, (data.output ?? data.task.output).artifacts]),
      [
        ['agent.completed', [artifact]],
        ['task.completed', [artifact]],
      ],
    )
  })

  it('save_file accepts either text or base64, not both', async () => {
    const task = await play(
      ['save_file', { name: 'dot.png', content_base64: png.toString('base64') }],
      ['save_file', { name: 'empty', content: '' }],
    )
    const [picture, empty] = task.output.artifacts
    assert.deepEqual([picture.media_type, picture.sha256, empty.bytes], ['image/png', digestOf(png), 0])
    assert.ok((await download(picture.file_id)).equals(png))
    assert.equal((await download(empty.file_id)).length, 0)
    for (const args of [
      { name: 'x' },
      { name: 'x', content: 'x', content_base64: 'eA==' },
      { name: 'x', content_base64: '*' },
    ]) {
      const failed = await play(['save_file', args])
      assert.match(failed.output.content, /content/)
      assert.equal(failed.output.artifacts, undefined)
    }
  })

  it('the list of artifacts is empty for a task without any, and 404 for other organizations', async () => {
    const task = await play(['read_file', { file_id: 'file_x' }])
    const path = `${project}/tasks/${task.id}/artifacts`
    assert.deepEqual((await test.send('GET', path)).body, { artifacts: [] })
    const stranger = await makeKey(test, await makePerson(test), ['admin'])
    assert.equal((await test.send('GET', path, { key: stranger.key })).status, 404)
    const reader = await makeKey(test, ownerOf(test), ['agents:read'])
    assert.equal((await test.send('GET', path, { key: reader.key })).status, 200)
  })

  it('save_file returns an error to the model if the quota of the project is used up', async () => {
    const small = await startTestService({ CADRE_FILES_MAX_BYTES_PROJECT: '10' })
    try {
      const made = await small.send('POST', '/api/v1/projects', { body: { name: 'small' } })
      const path = `/api/v1/projects/${made.body.id}/agents`
      const config = { model: 'builtin/script', tools: ['save_file'] }
      const { body: saver } = await small.send('POST', path, { body: { name: 'saver', config } })
      const call = { name: 'save_file', arguments: { name: 'x', content: 'more than ten bytes' } }
      const input = JSON.stringify([{ tool_calls: [call] }, { text: '{{tool_result}}' }])
      const { body } = await small.send('POST', `${path}/${saver.id}/tasks?wait=30`, { body: { input } })
      assert.deepEqual([body.status, body.output.artifacts], ['completed', undefined])
      assert.match(body.output.content, /reached their size limit/)
      assert.equal((await small.sql`select 1 from file`).length, 0)
    } finally {
      await small.stop()
    }
  })
})

describe('read_file', () => {
  it('read_file returns a text whole or in parts, and never cuts a character', async () => {
    const text = 'aé€😀z'
    const file_id = await upload(text, 'text.txt')
    assert.equal(await result(['read_file', { file_id }]), text)
    assert.equal(await result(['read_file', { file_id, offset: 1, length: 2 }]), 'é')
    // Parts of any size, one behind the other, are the text.
    for (const length of [1, 2, 3, 5, 7]) {
      const bytes = Buffer.byteLength(text)
      const calls = Array.from({ length: Math.ceil(bytes / length) }, (_, i) => i * length)
      const task = await play(...calls.map((offset): [string, object] => ['read_file', { file_id, offset, length }]))
      const { body } = await test.send('GET', `${project}/tasks/${task.id}/steps?limit=100`)
      const parts = body.steps.filter((one: any) => one.type === 'tool_call').map((one: any) => one.output.content)
      assert.equal(parts.join(''), text, `${length}`)
    }
    assert.equal(await result(['read_file', { file_id, offset: 1000 }]), '')
  })

  it('read_file says that there is more of a long file', async () => {
    const file_id = await upload('x'.repeat(70_000), 'long.txt')
    const content = await result(['read_file', { file_id }])
    assert.equal(content, `${'x'.repeat(65_536)}\n[bytes 0 to 65536 of 70000]`)
  })

  it('read_file fails for a file that is not text, is deleted or is of another project', async () => {
    const file_id = await upload(png, 'dot.png')
    const task = await play(['read_file', { file_id }])
    const { body } = await test.send('GET', `${project}/tasks/${task.id}/steps`)
    assert.equal(body.steps.find((one: any) => one.type === 'tool_call').error.code, 'not_text')
    const other = await createProject(test.send, 'elsewhere')
    const headers = { 'content-type': 'text/plain' }
    const path = `${other.path}/files`
    const { body: theirs } = await test.send('POST', path, { body: 'secret', headers })
    for (const id of [theirs.id, 'file_00000000000000000000000000', '../x'])
      assert.match(await result(['read_file', { file_id: id }]), /no file/)
    const { output } = await javascript(`try { files.read(${JSON.stringify(theirs.id)}) } catch (e) { e.message }`)
    assert.match(output.content, /no file/)
  })
})

describe('files of run_javascript', () => {
  it('files of run_javascript are read as bytes and saved as text or bytes', async () => {
    const bytes = Buffer.from([0, 1, 2, 254, 255])
    const file_id = await upload(bytes, 'bytes', 'application/octet-stream')
    const task = await javascript(`
      const bytes = await files.read('${file_id}')
      const ids = [
        files.save('twice', new Uint8Array([...bytes, ...bytes]).subarray(1)),
        files.save('list.csv', 'a,é', 'text/csv'),
      ]
      return { isBytes: bytes instanceof Uint8Array, length: bytes.length, ids }`)
    const [twice, list] = task.output.artifacts
    assert.deepEqual(JSON.parse(task.output.content), {
      isBytes: true,
      length: 5,
      ids: [twice.file_id, list.file_id],
    })
    assert.ok((await download(twice.file_id)).equals(Buffer.concat([bytes, bytes]).subarray(1)))
    assert.deepEqual([list.name, list.media_type, list.sha256], ['list.csv', 'text/csv', digestOf('a,é')])
  })

  it('run_javascript saves at most twenty files, of text or bytes and of limited size', async () => {
    const many = await javascript(`for (let i = 0; ; i++) files.save('x' + i, String(i))`)
    assert.match(many.output.content, /may save at most 20 files/)
    assert.equal(many.output.artifacts.length, 20)
    assert.match(
      (await javascript(`files.save('x', { a: 1 })`)).output.content,
      /string, an ArrayBuffer or a Uint8Array/,
    )
    const large = await javascript(`files.save('x', new Uint8Array(21 * 1024 * 1024))`)
    assert.match(large.output.content, /larger than 20971520 bytes/)
    const changed = await javascript(`ArrayBuffer.prototype.slice = null; String = null; typeof files.save('x', 'y')`)
    assert.equal(changed.output.content, 'string')
  })
})

describe('what a tool returns that is no text', () => {
  for (const [name, model] of Object.entries(protocols))
    it(`results of ${name} that are not text become files of the task, and the model sees pictures`, async (t) => {
      const server = await startLocalServer(t, (request, response) => {
        const type = request.url === '/dot.png' ? 'image/png' : 'application/octet-stream'
        response.writeHead(200, { 'content-type': type }).end(request.url === '/dot.png' ? png : Buffer.from([0, 1, 2]))
      })
      const mcp = await startMcpServer(t, {
        tools: [servedTool('draw')],
        answer: () => ({
          content: [
            { type: 'text', text: 'Drawn.' },
            { type: 'image', data: png.toString('base64'), mimeType: 'image/png' },
            {
              type: 'resource',
              resource: {
                uri: 'file:///notes/a.txt',
                mimeType: 'text/plain',
                blob: Buffer.from('noted').toString('base64'),
              },
            },
          ],
        }),
      })
      const suffix = name
      const made = await test.send('POST', `${project}/tools`, {
        body: { name: `art-${suffix}`, description: 'Draws.', kind: 'mcp', mcp: { url: `${mcp.url}/mcp` } },
      })
      assert.equal(made.status, 201, JSON.stringify(made.body))
      const get = await test.send('POST', `${project}/tools`, {
        body: {
          name: `get-${suffix}`,
          description: 'Gets.',
          kind: 'http',
          http: { method: 'GET', url: `${server.url}/{path}` },
          parameters: { type: 'object', properties: { path: { type: 'string' } } },
        },
      })
      assert.equal(get.status, 201, JSON.stringify(get.body))
      await agent(name, model, [`art-${suffix}`, `get-${suffix}`, 'http_request'])
      const before = models.requests.length
      const offered = (body: unknown, like: RegExp): string => like.exec(JSON.stringify(body))![0]
      let asked = false
      models.always(({ body }) => {
        if (asked) return { do: 'answer', text: 'I saw it.' }
        asked = true
        return {
          do: 'answer',
          text: '',
          tool_calls: [
            { id: 'call_1', name: offered(body.tools, /art-\w+?[_/-]+draw\w*/), arguments: {} },
            { id: 'call_2', name: `get-${suffix}`, arguments: { path: 'dot.png' } },
            { id: 'call_3', name: `get-${suffix}`, arguments: { path: 'bytes' } },
          ],
        } as never
      })
      const { body } = await test.send('POST', `${project}/agents/${agents[name]}/tasks?wait=30`, {
        body: { input: 'Draw.' },
      })
      assert.deepEqual([body.status, body.error], ['completed', null])
      assert.equal(body.output.artifacts, undefined, 'they are no artifacts')
      assert.deepEqual(models.refused, [])
      const seen = JSON.stringify(models.requests.at(-1)!.body)
      assert.equal(models.requests.length, before + 2)
      assert.equal(seen.split(png.toString('base64')).length - 1, 2, 'both pictures')
      assert.ok(seen.includes('Drawn.') && seen.includes('a.txt:\\nnoted'), seen)
      const { body: list } = await test.send('GET', `${project}/files?task_id=${body.id}`)
      assert.deepEqual(list.files.map((file: any) => [file.name, file.media_type]).sort(), [
        ['a.txt', 'text/plain'],
        ['bytes', 'application/octet-stream'],
        ['dot.png', 'image/png'],
        ['image.png', 'image/png'],
      ])
      for (const file of list.files) assert.ok(seen.includes(file.id), 'the model can name it')
      assert.deepEqual((await test.send('GET', `${project}/tasks/${body.id}/artifacts`)).body, { artifacts: [] })
    })

  it('results that a model does not support are omitted from its input', async (t) => {
    const server = await startLocalServer(t, (_request, response) =>
      response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.4\n\u0000'),
    )
    await agent('no-pdf', protocols.chat, ['http_request'])
    let asked = false
    models.always(() => {
      if (asked) return { do: 'answer', text: 'Fine.' }
      asked = true
      const call = { id: 'call_1', name: 'http_request', arguments: { method: 'GET', url: `${server.url}/a.pdf` } }
      return { do: 'answer', text: '', tool_calls: [call] } as never
    })
    const { body } = await test.send('POST', `${project}/agents/${agents['no-pdf']}/tasks?wait=30`, {
      body: { input: 'Get.' },
    })
    assert.deepEqual([body.status, body.output.content], ['completed', 'Fine.'])
    assert.match(JSON.stringify(models.requests.at(-1)!.body), /is not shown: /)
  })
})
