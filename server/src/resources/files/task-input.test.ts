import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, it } from 'node:test'
import { deflateSync } from 'node:zlib'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { startFakeModelServer, type FakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { startLocalServer } from '../../../test/fakes/local-server.ts'
import { toolEgress } from '../../../test/tool-call.ts'
import { receiveUrls } from '../../engine/files/input-files.ts'
import { startTestService, type Reply, type TestService } from '../../../test/harness.ts'

let test: TestService
let models: FakeModelServer
let project: string
const agents: Record<string, string> = {}

const protocols = {
  responses: 'openai/gpt-4.1',
  chat: 'plain/some-model',
  messages: 'anthropic/claude-sonnet-4-5',
} as const

before(async () => {
  models = await startFakeModelServer()
  test = await startTestService({
    OPENAI_API_KEY: 'sk-fake',
    OPENAI_BASE_URL: models.base_url,
    OPENAI_PROTOCOL: 'responses',
    ANTHROPIC_API_KEY: 'sk-fake',
    ANTHROPIC_BASE_URL: models.base_url,
    CADRE_PROVIDER_PLAIN_BASE_URL: models.base_url,
  })
  const made = await test.send('POST', '/api/v1/projects', { body: { name: 'pictures' } })
  project = `/api/v1/projects/${made.body.id}`
  for (const [name, model] of Object.entries({ ...protocols, echo: 'builtin/echo' })) {
    const { body } = await test.send('POST', `${project}/agents`, { body: { name, config: { model } } })
    agents[name] = body.id
  }
})
after(async () => {
  await test.stop()
  await models.close()
})

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const pdf = Buffer.from('%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n')

async function upload(bytes: Uint8Array<ArrayBuffer> | string, name: string): Promise<string> {
  const response = await fetch(new URL(`${project}/files?name=${name}`, test.url), {
    method: 'POST',
    headers: { 'x-api-key': test.owner.api_key, 'content-type': 'application/octet-stream' },
    body: bytes,
  })
  const body = (await response.json()) as { id: string }
  assert.equal(response.status, 201, JSON.stringify(body))
  return body.id
}

const user = (...content: object[]): object[] => [{ role: 'user', content }]
const give = (agent: string, input: unknown, wait = 30): Promise<Reply> =>
  test.send('POST', `${project}/agents/${agents[agent]}/tasks?wait=${wait}`, { body: { input } })

/** Everything in base64 that a request to a model has, decoded. */
function bytesIn(body: unknown): string[] {
  const found = JSON.stringify(body).matchAll(/(?:;base64,|"data":")([A-Za-z0-9+/=]+)"/g)
  return [...found].map(([, encoded]) => Buffer.from(encoded!, 'base64').toString('hex'))
}

describe('a picture in a message', () => {
  for (const agent of ['responses', 'chat', 'messages'] as const) {
    it(`a picture in a message reaches the model of ${agent} byte for byte`, async () => {
      const file_id = await upload(png, 'dot.png')
      const before = models.requests.length
      const input = user({ type: 'text', text: 'What is this?' }, { type: 'image', file_id })
      const { status, body } = await give(agent, input)
      assert.deepEqual([status, body.status, body.error], [201, 'completed', null])
      assert.deepEqual(body.input, input)
      assert.deepEqual(models.refused, [])
      const request = models.requests[before]!
      assert.deepEqual(bytesIn(request.body), [png.toString('hex')])
      assert.ok(
        JSON.stringify(request.body).includes('image/png') || JSON.stringify(request.body).includes('What is this?'),
      )
    })
  }

  it('a picture given as data becomes a file of the task and reaches the model', async () => {
    const url = `data:image/png;base64,${png.toString('base64')}`
    const before = models.requests.length
    const { body } = await give('chat', user({ type: 'image', url }, { type: 'image', url }))
    assert.equal(body.status, 'completed')
    const [part, again] = body.input[0].content
    assert.match(part.file_id, /^file_/)
    assert.deepEqual(again, part)
    assert.equal(part.url, undefined)
    const { body: file } = await test.send('GET', `${project}/files/${part.file_id}`)
    assert.deepEqual(
      [file.task_id, file.media_type, file.bytes, file.expires_at],
      [body.id, 'image/png', png.length, null],
    )
    assert.deepEqual(bytesIn(models.requests[before]!.body), [png.toString('hex'), png.toString('hex')])
  })

  it('a picture is given by file or by URL and not by both, and the other one may be null', async () => {
    const url = `data:image/png;base64,${png.toString('base64')}`
    const file_id = await upload(png, 'one.png')
    const both = await give('echo', user({ type: 'image', file_id, url }))
    assert.deepEqual([both.status, both.body.error.details[0].field], [400, 'input[0].content[0]'])
    for (const part of [
      { file_id, url: null },
      { file_id: null, url },
    ]) {
      const { status, body } = await give('echo', user({ type: 'image', ...part }))
      assert.equal(status, 201, JSON.stringify(body))
      assert.deepEqual(Object.keys(body.input[0].content[0]).toSorted(), ['file_id', 'type'])
    }
  })

  it('a picture given as data is stored once for an Idempotency-Key', async () => {
    const url = `data:image/png;base64,${png.toString('base64')}`
    const send = () =>
      test.send('POST', `${project}/agents/${agents.echo}/tasks`, {
        body: { input: user({ type: 'image', url }) },
        headers: { 'idempotency-key': 'picture' },
      })
    const [one, two] = [await send(), await send()]
    assert.equal(one.status, 201)
    assert.deepEqual(two.body, one.body)
    const { body } = await test.send('GET', `${project}/files?task_id=${one.body.id}`)
    assert.equal(body.pagination.total, 1)
    assert.equal((await test.sql`select 1 from file where sha256 is null`).length, 0)
  })

  it('a picture with invalid data or an invalid URL is 400 and leaves nothing', async () => {
    for (const url of [
      'data:image/png;base64,',
      'data:image/png,abc',
      'data:image/png;base64,***',
      'https://10.0.0.1/a.png',
    ]) {
      const { status, body } = await give('echo', user({ type: 'image', url }))
      assert.deepEqual([status, body.error.details[0].field], [400, 'input[0].content[0].url'], url)
    }
    for (const part of [{ type: 'image', url: 'http://example.com/a.png' }, { type: 'image' }, { type: 'video' }])
      assert.equal((await give('echo', user(part))).status, 400, JSON.stringify(part))
    const system = [{ role: 'system', content: [{ type: 'image', file_id: await upload(png, 'a.png') }] }]
    assert.equal((await give('echo', system)).status, 400)
    assert.equal((await test.sql`select 1 from file where sha256 is null`).length, 0)
  })

  it('a picture in a message may exceed a megabyte in a task, and nowhere else', async () => {
    const url = `data:image/png;base64,${Buffer.concat([png, Buffer.alloc(4_000_000)]).toString('base64')}`
    const { status } = await give('echo', user({ type: 'image', url }), 0)
    assert.equal(status, 201)
    const large = 'x'.repeat(8_500_000)
    const tooLarge = await give('echo', large, 0)
    assert.deepEqual([tooLarge.status, tooLarge.body.error.details[0].max], [400, 8_388_608])
    const name = { name: 'x'.repeat(1_100_000) }
    const other = await test.send('POST', `${project}/agents`, { body: name })
    assert.deepEqual([other.status, other.body.error.details[0].max], [400, 1_048_576])
  })

  it('a picture of 100,000 by 100,000 pixels is accepted, because pictures are not decoded', async () => {
    const header = Buffer.from(png)
    header.writeUInt32BE(100_000, 16)
    header.writeUInt32BE(100_000, 20)
    const file_id = await upload(Buffer.concat([header, deflateSync(Buffer.alloc(100_000))]), 'huge.png')
    const { body } = await give('chat', user({ type: 'image', file_id }))
    assert.equal(body.status, 'completed')
  })
})

describe('a picture that is given by its address', () => {
  const fetchAll = (...urls: string[]) => {
    const whose = { project_id: Number(project.split('/').at(-1)), created_by: test.owner.user_id }
    const named = urls.map((url) => ({ url, field: 'input[0].content[0].url' }))
    return receiveUrls({ files: test.service.context.files, egress: toolEgress }, whose, named)
  }

  it('a picture given by URL is stored unchanged, also after redirects, and leaves nothing if it cannot be fetched', async (t) => {
    const large = Buffer.concat([png, Buffer.alloc(15_000_000, 7)])
    const server = await startLocalServer(t, (request, response) => {
      if (request.url === '/moved') return response.writeHead(302, { location: '/large.png' }).end()
      if (request.url === '/loop') return response.writeHead(302, { location: '/loop' }).end()
      if (request.url === '/away') return response.writeHead(302, { location: 'http://10.0.0.1/' }).end()
      if (request.url === '/missing') return response.writeHead(404).end('no')
      response.writeHead(200, { 'content-type': 'image/png' })
      if (request.url === '/endless') {
        const more = (): void => void response.write(large, (error) => !error && more())
        return more()
      }
      if (request.url === '/cut') return response.write(png, () => response.destroy())
      response.end(large)
    })
    const [file] = (await fetchAll(`${server.url}/moved`)).values()
    const facts = [file!.bytes, file!.media_type, file!.sha256]
    assert.deepEqual(facts, [large.length, 'image/png', createHash('sha256').update(large).digest('hex')])
    await test.service.context.files.discard(file!)
    for (const path of ['/missing', '/loop', '/away', '/cut', '/endless'])
      await assert.rejects(fetchAll(`${server.url}/large.png`, `${server.url}${path}`), (error: any) => {
        assert.ok(error.status === 400 || error.status === 413, `${path}: ${error}`)
        return true
      })
    assert.equal((await test.sql`select 1 from file where sha256 is null`).length, 0)
  })
})

describe('a document in a message', () => {
  for (const agent of ['responses', 'messages'] as const) {
    it(`a PDF in a message reaches the model of ${agent} unchanged`, async () => {
      const file_id = await upload(pdf, 'invoice.pdf')
      const before = models.requests.length
      const { body } = await give(agent, user({ type: 'text', text: 'Sum it up.' }, { type: 'file', file_id }))
      assert.deepEqual([body.status, body.error], ['completed', null])
      assert.deepEqual(bytesIn(models.requests[before]!.body), [pdf.toString('hex')])
    })
  }

  it('a text document in a message reaches the model as text after its name', async () => {
    const file_id = await upload('a,b\n1,2\n', 'table.csv')
    for (const agent of ['responses', 'chat', 'messages']) {
      const before = models.requests.length
      const { body } = await give(agent, user({ type: 'file', file_id }))
      assert.equal(body.status, 'completed')
      const said = JSON.stringify(models.requests[before]!.body)
      assert.ok(said.includes(JSON.stringify('table.csv:\na,b\n1,2\n').slice(1, -1)), said)
    }
  })

  it('a document that the model does not support fails the task before the model is called', async () => {
    const zip = await upload(Buffer.from('PK\u0003\u0004 a bomb'), 'bomb.zip')
    const document = await upload(pdf, 'invoice.pdf')
    const cases: [string, object, string][] = [
      ['responses', { type: 'file', file_id: zip }, protocols.responses],
      ['messages', { type: 'image', file_id: zip }, protocols.messages],
      ['chat', { type: 'file', file_id: document }, protocols.chat],
      ['echo', { type: 'file', file_id: document }, 'builtin/echo'],
      ['responses', { type: 'image', file_id: document }, protocols.responses],
    ]
    for (const [agent, part, model] of cases) {
      const before = models.requests.length
      const { body } = await give(agent, user({ type: 'text', text: 'Look.' }, part))
      assert.deepEqual([body.status, body.error.code, body.error.retryable], ['failed', 'unsupported_input', false])
      assert.ok(body.error.message.includes('part 2') && body.error.message.includes(model), body.error.message)
      assert.equal(models.requests.length, before)
    }
  })
})

describe('a message to a task', () => {
  it('a message to a task shows pictures and documents like its input, also those given as data', async () => {
    const file_id = await upload('a,b', 'sent.csv')
    const url = `data:image/png;base64,${png.toString('base64')}`
    await test.send('POST', `${project}/agents/${agents.chat}/pause`)
    const { body: task } = await give('chat', 'Wait for it.', 0)
    const messages = `${project}/tasks/${task.id}/messages`
    const content = [
      { type: 'text', text: 'Here:' },
      { type: 'image', url },
      { type: 'file', file_id },
    ]
    const sent = await test.send('POST', messages, { body: { content } })
    assert.equal(sent.status, 201, JSON.stringify(sent.body))
    const picture = sent.body.content[1].file_id
    assert.deepEqual(sent.body.content, [content[0], { type: 'image', file_id: picture }, content[2]])
    assert.equal((await test.send('GET', `${project}/files/${picture}`)).body.task_id, task.id)
    assert.equal((await test.send('DELETE', `${project}/files/${file_id}`)).status, 409, 'it is in use')
    const elsewhere = { content: [{ type: 'file', file_id: 'file_00000000000000000000000000' }] }
    const missing = await test.send('POST', messages, { body: elsewhere })
    assert.deepEqual([missing.status, missing.body.error.details.resource_type], [404, 'file'])
    const broken = await test.send('POST', messages, {
      body: { content: [{ type: 'image', url: 'data:image/png,x' }] },
    })
    assert.deepEqual([broken.status, broken.body.error.details[0].field], [400, 'content[0].url'])
    const before = models.requests.length
    await test.send('POST', `${project}/agents/${agents.chat}/start`)
    const { body } = await test.send('GET', `${project}/tasks/${task.id}?wait=30`)
    assert.deepEqual([body.status, body.error], ['completed', null])
    const request = models.requests[before]!.body
    assert.deepEqual(bytesIn(request), [png.toString('hex')])
    assert.ok(JSON.stringify(request).includes('sent.csv:\\na,b'), 'the text behind its name')
    // A retry reads the same.
    const retried = await test.send('POST', `${project}/tasks/${task.id}/retry?wait=30`, { body: { from_step: 1 } })
    assert.deepEqual([retried.status, retried.body.status], [201, 'completed'], JSON.stringify(retried.body))
    assert.equal((await test.sql`select 1 from file where sha256 is null`).length, 0)
  })

  it('a message that answers a question of the model shows its picture after the answer', async () => {
    const made = await test.send('POST', `${project}/agents`, {
      body: { name: 'asker', config: { model: protocols.responses, tools: ['request_input'] } },
    })
    agents.asker = made.body.id
    models.next({ do: 'answer', tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] })
    const { body: task } = await give('asker', 'Ask me.')
    assert.deepEqual([task.status, task.wait?.reason], ['waiting', 'input'])
    const before = models.requests.length
    const content = [
      { type: 'text', text: 'This one.' },
      { type: 'image', file_id: await upload(png, 'answer.png') },
    ]
    const sent = await test.send('POST', `${project}/tasks/${task.id}/messages`, { body: { content } })
    assert.equal(sent.status, 201)
    const { body } = await test.send('GET', `${project}/tasks/${task.id}?wait=30`)
    assert.deepEqual([body.status, body.error], ['completed', null])
    assert.deepEqual(bytesIn(models.requests[before]!.body), [png.toString('hex')])
    assert.deepEqual(models.refused, [])
  })
})

describe('a file that a task names', () => {
  it('a file that a task names must be of the project', async () => {
    const file_id = await upload(png, 'own.png')
    const stranger = await makeKey(test, await makePerson(test), ['admin'])
    const { body: theirs } = await test.send('POST', '/api/v1/projects', {
      key: stranger.key,
      body: { name: 'theirs' },
    })
    const path = `/api/v1/projects/${theirs.id}/agents`
    const { body: agent } = await test.send('POST', path, { key: stranger.key, body: { name: 'spy' } })
    const input = user({ type: 'image', file_id })
    const bodies: [string, object][] = [
      [`${path}/${agent.id}/tasks`, { input }],
      [`${path}/${agent.id}/test-cases`, { name: 'x', input }],
      [`/api/v1/projects/${theirs.id}/schedules`, { name: 'x', agent_id: agent.id, cron: '0 0 1 1 *', input }],
    ]
    for (const [url, body] of bodies) {
      const reply = await test.send('POST', url, { key: stranger.key, body })
      assert.deepEqual(
        [reply.status, reply.body.error.code, reply.body.error.details],
        [404, 'resource_not_found', { resource_type: 'file', resource_id: file_id }],
        url,
      )
    }
    for (const id of ['file_00000000000000000000000000', 'nothing', '../x'])
      assert.equal((await give('echo', user({ type: 'image', file_id: id }))).status, 404)
  })

  it('a file cannot be deleted while a task that names it is open, unless forced; then the task reports it', async () => {
    const file_id = await upload(png, 'used.png')
    await test.send('POST', `${project}/agents/${agents.chat}/pause`)
    const { body: task } = await give('chat', user({ type: 'image', file_id }), 0)
    const refused = await test.send('DELETE', `${project}/files/${file_id}`)
    assert.deepEqual([refused.status, refused.body.error.code], [409, 'file_in_use'])
    assert.equal((await test.send('GET', `${project}/files/${file_id}`)).body.expires_at, null)
    assert.equal((await test.send('DELETE', `${project}/files/${file_id}?force=true`)).status, 200)
    await test.send('POST', `${project}/agents/${agents.chat}/start`)
    const { body } = await test.send('GET', `${project}/tasks/${task.id}?wait=30`)
    assert.deepEqual([body.status, body.error.code], ['failed', 'file_missing'])
    assert.ok(body.error.message.includes(file_id))
  })

  it('a file that a task named can be deleted after the task', async () => {
    const file_id = await upload(png, 'done.png')
    assert.equal((await give('echo', user({ type: 'image', file_id }))).body.status, 'completed')
    assert.equal((await test.send('DELETE', `${project}/files/${file_id}`)).status, 200)
  })
})
