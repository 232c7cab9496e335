import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import OpenAI from 'openai'
import { makeKey, makePerson } from '../../../test/actors.ts'
import { a2aClient, a2aMessage, a2aRequest } from '../../../test/fakes/a2a-client.ts'
import { startFakeModelServer, type FakeModelServer } from '../../../test/fake-models/fake-model-server.ts'
import { startTestService, type TestService } from '../../../test/harness.ts'

let models: FakeModelServer
let test: TestService
let client: OpenAI
let project: string
const agents: Record<string, string> = {}

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const pdf = Buffer.from('%PDF-1.4\n1 0 obj<<>>endobj\ntrailer<<>>\n%%EOF\n')
const picture = `data:image/png;base64,${png.toString('base64')}`
const document = `data:application/pdf;base64,${pdf.toString('base64')}`

before(async () => {
  models = await startFakeModelServer()
  test = await startTestService({
    CADRE_DOORS: 'openai,a2a',
    OPENAI_API_KEY: 'sk-fake',
    OPENAI_BASE_URL: models.base_url,
    OPENAI_PROTOCOL: 'responses',
  })
  const made = await test.send('POST', '/api/v1/projects', { body: { name: 'seen' } })
  project = `/api/v1/projects/${made.body.id}`
  const doors = { a2a: { published: true } }
  const configs = {
    sees: { model: 'openai/gpt-4.1', doors },
    echo: { model: 'builtin/echo', doors },
    script: { model: 'builtin/script', tools: ['request_input'] },
    form: { model: 'builtin/echo', doors, input_schema: { type: 'object' } },
  }
  for (const [name, config] of Object.entries(configs)) {
    const { body } = await test.send('POST', `${project}/agents`, { body: { name, config } })
    agents[name] = body.id
  }
  client = new OpenAI({ apiKey: test.owner.api_key, baseURL: `${test.url}/v1`, maxRetries: 0 })
})
after(async () => {
  await test.stop()
  await models.close()
})

async function upload(bytes: Buffer, name: string, key = test.owner.api_key, at = project): Promise<string> {
  const response = await fetch(new URL(`${at}/files?name=${name}`, test.url), {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/octet-stream' },
    body: new Uint8Array(bytes),
  })
  const { id } = (await response.json()) as { id: string }
  assert.equal(response.status, 201)
  return id
}
/** All base64 data in requests to the model after the first `count` ones. */
const sentSince = (count: number): string[] =>
  [...JSON.stringify(models.requests.slice(count).map(({ body }) => body)).matchAll(/;base64,([A-Za-z0-9+/=]+)"/g)].map(
    ([, encoded]) => Buffer.from(encoded!, 'base64').toString('hex'),
  )
const taskOf = async (id: string) => (await test.send('GET', `${project}/tasks/${id}`)).body
const unfinished = async (): Promise<number> => (await test.sql`select 1 from file where sha256 is null`).length

describe('pictures and files of OpenAI clients', () => {
  it('images and files of a chat reach the model byte for byte', async () => {
    const before = models.requests.length
    const file_id = await upload(pdf, 'stored.pdf')
    const { response } = await client.chat.completions
      .create({
        model: 'sees',
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'What is this?' },
              { type: 'image_url', image_url: { url: picture, detail: 'low' } },
              { type: 'file', file: { file_data: document, filename: 'note.pdf' } },
              { type: 'file', file: { file_id } },
            ],
          },
        ],
      })
      .withResponse()
    assert.deepEqual(
      sentSince(before),
      [png, pdf, pdf].map((bytes) => bytes.toString('hex')),
    )
    const task = await taskOf(response.headers.get('cadre-task-id')!)
    const parts = task.input[0].content
    assert.deepEqual(
      parts.map(({ type }: any) => type),
      ['text', 'image', 'file', 'file'],
    )
    const { body: file } = await test.send('GET', `${project}/files/${parts[2].file_id}`)
    assert.deepEqual([file.name, file.media_type, file.task_id], ['note.pdf', 'application/pdf', task.id])
    assert.deepEqual([parts[3].file_id, await unfinished()], [file_id, 0])
  })

  it('images and files of a response reach the model and are shown by their id', async () => {
    const before = models.requests.length
    const response = await client.responses.create({
      model: 'sees',
      input: [
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'Look.' },
            { type: 'input_image', image_url: picture, detail: 'auto' },
            { type: 'input_file', file_data: pdf.toString('base64'), filename: 'plain.pdf' },
          ],
        },
      ],
    })
    assert.equal(response.status, 'completed')
    assert.deepEqual(
      sentSince(before),
      [png, pdf].map((bytes) => bytes.toString('hex')),
    )
    const { data } = await client.responses.inputItems.list(response.id)
    const [, image, file] = (data[0] as any).content
    assert.match(image.file_id, /^file_/)
    assert.deepEqual([image.image_url, file.file_data, file.filename], [undefined, undefined, 'plain.pdf'])
    // The client sends the id with its history.
    const again = models.requests.length
    await client.responses.create({ model: 'sees', input: data as any })
    assert.deepEqual(sentSince(again).length, 2)
  })

  it('the first response of a conversation reads its images and files', async () => {
    const before = models.requests.length
    const conversation = await client.conversations.create({
      items: [{ role: 'user', content: [{ type: 'input_image', image_url: picture, detail: 'auto' }] }],
    })
    const response = await client.responses.create({ model: 'sees', input: 'Well?', conversation: conversation.id })
    assert.equal(response.status, 'completed')
    assert.deepEqual(sentSince(before), [png.toString('hex')])
  })

  it('images and files can answer a question of the previous response', async () => {
    const steps = [{ tool_calls: [{ name: 'request_input', arguments: { question: 'Which?' } }] }, { text: 'Thanks.' }]
    const asked = await client.responses.create({ model: 'script', input: JSON.stringify(steps) })
    const answered = await client.responses.create({
      model: 'script',
      previous_response_id: asked.id,
      input: [{ role: 'user', content: [{ type: 'input_image', image_url: picture, detail: 'auto' }] }],
    })
    assert.equal(answered.output_text, 'Thanks.')
    const { body } = await test.send('GET', `${project}/files?task_id=${(answered as any).cadre.task_id}`)
    assert.deepEqual([body.files.length, body.files[0].bytes, await unfinished()], [1, png.length, 0])
  })

  it('invalid files, and files of another organization, are refused with their parameter', async () => {
    const stranger = await makePerson(test)
    const { key } = await makeKey(test, stranger, ['agents:write', 'tasks:write', 'projects:write'])
    const { body: theirs } = await test.send('POST', '/api/v1/projects', { key, body: { name: 'theirs' } })
    const foreign = await upload(png, 'theirs.png', key, `/api/v1/projects/${theirs.id}`)
    const before = (await test.sql`select 1 from task`).length
    const cases: [object, number, string][] = [
      [{ type: 'input_image', file_id: foreign }, 404, 'input[0].content[0].file_id'],
      [{ type: 'input_file', file_id: 'file_nothing' }, 404, 'input[0].content[0].file_id'],
      [{ type: 'input_image', image_url: 'http://example.com/a.png' }, 400, 'input[0].content[0].image_url'],
      [{ type: 'input_image', image_url: 'https://10.0.0.1/a.png' }, 400, 'input[0].content[0].image_url'],
      [{ type: 'input_image', image_url: 'data:image/png;base64,***' }, 400, 'input[0].content[0].image_url'],
      [{ type: 'input_file', filename: 'x' }, 400, 'input[0].content[0]'],
      [{ type: 'input_audio', input_audio: {} }, 400, 'input[0].content[0]'],
    ]
    for (const [part, status, param] of cases) {
      const reply = await test.send('POST', '/v1/responses', {
        body: { model: 'sees', input: [{ role: 'user', content: [part] }] },
      })
      assert.deepEqual([reply.status, reply.body.error.param], [status, param], JSON.stringify(part))
    }
    const chat = await test.send('POST', '/v1/chat/completions', {
      body: {
        model: 'sees',
        messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: foreign } }] }],
      },
    })
    assert.deepEqual([chat.status, chat.body.error.code], [404, 'resource_not_found'])
    assert.equal((await test.sql`select 1 from task`).length, before)
    assert.equal(await unfinished(), 0)
  })

  it('an Idempotency-Key stores one file, and a refused request stores none', async () => {
    const body = {
      model: 'echo',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: picture } }] }],
    }
    const send = () =>
      test.send('POST', '/v1/chat/completions', { body, headers: { 'idempotency-key': 'door-picture' } })
    const [one, two] = [await send(), await send()]
    assert.deepEqual([one.status, one.body.id], [200, two.body.id])
    const task_id = one.headers.get('cadre-task-id')
    const { body: files } = await test.send('GET', `${project}/files?task_id=${task_id}`)
    assert.deepEqual([files.pagination.total, await unfinished()], [1, 0])
    const form = await test.send('POST', '/v1/chat/completions', { body: { ...body, model: 'form' } })
    assert.deepEqual([form.status, form.body.error.code, await unfinished()], [400, 'unsupported_parameter', 0])
  })
})

describe('files of A2A clients', () => {
  const card = (name: string): string => `${test.url}/a2a/agents/${agents[name]}/.well-known/agent-card.json`
  const send = (name: string, parts: object[], at = 'message:send') =>
    test.send('POST', `/a2a/agents/${agents[name]}/${at}`, {
      headers: { 'a2a-version': '1.0' },
      body: { message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts } },
    })

  it('files of A2A clients reach the model byte for byte, and the history has their URL in place of their bytes', async () => {
    const before = models.requests.length
    const raw = png.toString('base64')
    const { status, body } = await send('sees', [
      { text: 'What is this?' },
      { raw, mediaType: 'image/png', filename: 'dot.png' },
      { raw: pdf.toString('base64'), mediaType: 'application/pdf', filename: 'note.pdf' },
    ])
    assert.equal(status, 200, JSON.stringify(body))
    assert.deepEqual(
      sentSince(before),
      [png, pdf].map((bytes) => bytes.toString('hex')),
    )
    const task = await test.send('GET', `/a2a/agents/${agents['sees']}/tasks/${JSON.parse(body).task.id}`, {
      headers: { 'a2a-version': '1.0' },
    })
    const [text, image] = JSON.parse(task.body as never).history[0].parts
    assert.deepEqual([text.text, image.raw, image.filename], ['What is this?', undefined, 'dot.png'])
    const content = await fetch(image.url, { headers: { 'x-api-key': test.owner.api_key } })
    assert.deepEqual(Buffer.from(await content.arrayBuffer()), png)
    assert.equal(await unfinished(), 0)
  })

  it('files of the A2A client library are accepted by JSON-RPC', async () => {
    const before = models.requests.length
    const a2a = await a2aClient(card('sees'), test.owner.api_key)
    const message = a2aMessage('See:')
    const part = { ...message.parts[0]!, content: { $case: 'raw' as const, value: png }, mediaType: 'image/png' }
    await a2a.sendMessage(a2aRequest({ ...message, parts: [...message.parts, part] }))
    assert.deepEqual(sentSince(before), [png.toString('hex')])
  })

  it('invalid files of A2A clients, and any files for an agent with an input schema, are refused', async () => {
    const cases: [string, object, string][] = [
      ['echo', { url: 'http://example.com/a.png' }, 'message.parts[0].url'],
      ['echo', { url: 'https://10.0.0.1/a.png' }, 'message.parts[0].url'],
      ['echo', { raw: '***' }, 'message.parts[0].raw'],
      ['form', { raw: png.toString('base64') }, 'message.parts[0].raw'],
    ]
    for (const [agent, part, field] of cases) {
      const { status, body } = await send(agent, [part])
      assert.ok([400, 415].includes(status) && JSON.stringify(body).includes(field), JSON.stringify([status, body]))
    }
    assert.equal(await unfinished(), 0)
  })
})
