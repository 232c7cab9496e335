import assert from 'node:assert/strict'
import { createHash, randomInt } from 'node:crypto'
import { connect } from 'node:net'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileBounds } from '#contract/resources/files.ts'
import { makeKey, makePerson, ownerOf } from '../../../test/actors.ts'
import { load, makeEmptyDatabase, save } from '../../../test/backups.ts'
import { eventually, sender, startOn, startTestService, type Reply, type TestService } from '../../../test/harness.ts'
import { sweepFiles } from './files.queries.ts'
import { createProject } from '../../../test/fixtures.ts'

let test: TestService
let project: string
let files: string

before(async () => {
  test = await startTestService()
  const made = await test.send('POST', '/api/v1/projects', { body: { name: 'papers' } })
  project = `/api/v1/projects/${made.body.id}`
  files = `${project}/files`
})
after(() => test.stop())

const digestOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** Any request with a body of bytes or a form. */
async function send(method: string, path: string, init: RequestInit = {}, key = test.owner.api_key): Promise<Response> {
  return fetch(new URL(path, test.url), { method, ...init, headers: { 'x-api-key': key, ...init.headers } })
}

const upload = async (
  body: NonNullable<RequestInit['body']>,
  query = '',
  headers: Record<string, string> = {},
): Promise<Reply> => {
  const response = await send('POST', `${files}${query}`, { body, headers })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const form = (parts: Record<string, Blob | string>, filename?: string): FormData => {
  const all = new FormData()
  for (const [name, value] of Object.entries(parts))
    if (typeof value === 'string') all.append(name, value)
    else all.append(name, value, filename)
  return all
}

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

describe('a file', () => {
  it('a file is uploaded as a body, read, listed, downloaded and deleted', async () => {
    const bytes = Buffer.alloc(2_500_000, 'abc\n')
    const { status, body } = await upload(bytes, '?name=notes.txt', { 'content-type': 'text/plain' })
    assert.equal(status, 201)
    const { id, created_at, created_by, expires_at, ...rest } = body
    assert.match(id, /^file_/)
    assert.deepEqual(rest, {
      name: 'notes.txt',
      media_type: 'text/plain',
      bytes: bytes.length,
      sha256: digestOf(bytes),
      task_id: null,
    })
    assert.equal(created_by, test.owner.user_id)
    assert.equal(Date.parse(expires_at) - Date.parse(created_at), fileBounds.unused_days * 86_400_000)
    assert.deepEqual((await test.send('GET', `${files}/${id}`)).body, body)
    const { body: list } = await test.send('GET', `${files}?search=NOTES`)
    assert.deepEqual([list.files, list.pagination.total], [[body], 1])
    const content = await send('GET', `${files}/${id}/content`)
    assert.equal(digestOf(await content.bytes()), body.sha256)
    const { body: deleted } = await test.send('DELETE', `${files}/${id}`)
    assert.deepEqual(deleted, { message: 'File deleted', file_id: id })
    assert.equal((await test.send('GET', `${files}/${id}`)).status, 404)
    assert.equal((await send('GET', `${files}/${id}/content`)).status, 404)
  })

  it("a file is uploaded by a form, and the form's name field has priority over the name of the part", async () => {
    const named = await upload(form({ file: new Blob([png]), name: 'picture.png' }, 'c:\\x\\other.png'))
    assert.equal(named.status, 201, JSON.stringify(named.body))
    assert.deepEqual(
      [named.body.name, named.body.media_type, named.body.sha256],
      ['picture.png', 'image/png', digestOf(png)],
    )
    const { body } = await upload(form({ file: new Blob([png]) }, 'own.png'))
    assert.equal(body.name, 'own.png')
    const none = await upload(form({ name: 'x' }))
    assert.deepEqual([none.status, none.body.error.details[0].field], [400, 'file'])
    const broken = await upload('no form', '', { 'content-type': 'multipart/form-data' })
    assert.equal(broken.status, 400)
  })

  it('dangerous characters are removed from the name of a file', async () => {
    const names: [string, string][] = [
      ['../../x', '....x'],
      ['..', 'file'],
      ['', 'file'],
      ['a\u0000b\r\nc', 'abc'],
      ['\u202egnp.exe', 'gnp.exe'],
      ['é'.repeat(200), 'é'.repeat(127)],
      ['a"b;\\c', 'a"b;c'],
    ]
    for (const [given, name] of names) {
      const { body } = await upload(form({ file: new Blob(['x']), name: given }))
      assert.equal(body.name, name, JSON.stringify(body))
      const { headers } = await send('GET', `${files}/${body.id}/content`)
      assert.match(headers.get('content-disposition')!, /^attachment; filename="[^"\\]*"; filename\*=UTF-8''[\w.%-]*$/)
    }
    assert.equal((await upload('x', `?name=${encodeURIComponent('../../x')}`)).body.name, '....x')
  })

  it('the type of a file follows from its bytes, and only pictures are shown inline', async () => {
    const svg = '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    const polyglot = Buffer.concat([Buffer.from('GIF89a'), Buffer.from('=1;<script>alert(1)</script>')])
    const cases: [string | Buffer<ArrayBuffer>, string, string, 'inline' | 'attachment'][] = [
      [png, 'text/html', 'image/png', 'inline'],
      ['<!DOCTYPE html><script>alert(1)</script>', 'image/png', 'text/html', 'attachment'],
      ['  <html>', 'text/plain', 'text/html', 'attachment'],
      [svg, 'image/png', 'image/svg+xml', 'attachment'],
      [polyglot, 'text/html', 'image/gif', 'inline'],
      ['%PDF-1.7\n', 'text/html', 'application/pdf', 'attachment'],
      ['a,b\n1,2', 'text/csv; charset=utf-8', 'text/csv', 'attachment'],
      ['{"a": 1}', 'application/octet-stream', 'application/json', 'attachment'],
      ['plain', 'image/png', 'text/plain', 'attachment'],
      [Buffer.from([0, 1, 2, 255]), 'image/png', 'application/octet-stream', 'attachment'],
      ['PK\u0003\u0004', 'text/plain', 'application/zip', 'attachment'],
    ]
    for (const [bytes, declared, media_type, disposition] of cases) {
      const { body } = await upload(bytes, '', { 'content-type': declared })
      assert.equal(body.media_type, media_type, String(bytes))
      const { headers } = await send('GET', `${files}/${body.id}/content`)
      assert.equal(headers.get('content-type')?.split(';')[0], media_type)
      assert.ok(headers.get('content-disposition')?.startsWith(disposition), media_type)
      assert.equal(headers.get('x-content-type-options'), 'nosniff')
      assert.match(headers.get('content-security-policy')!, /^sandbox; default-src 'none'/)
    }
  })

  it('a file is served in ranges, and not sent again for a matching ETag', async () => {
    const bytes = Buffer.alloc(3_000_000)
    for (let i = 0; i < bytes.length; i += 4) bytes.writeUInt32BE(i, i)
    const { body } = await upload(bytes)
    const path = `${files}/${body.id}/content`
    const etag = `"${body.sha256}"`
    const whole = await send('GET', path)
    assert.deepEqual(
      [whole.status, whole.headers.get('etag'), whole.headers.get('accept-ranges')],
      [200, etag, 'bytes'],
    )
    assert.equal(whole.headers.get('content-length'), String(bytes.length))
    await whole.body?.cancel()
    const parts: [string, number, number][] = [
      ['bytes=0-0', 0, 1],
      ['bytes=1048570-1048585', 1_048_570, 1_048_586],
      ['bytes=2999990-', 2_999_990, 3_000_000],
      ['bytes=-7', 2_999_993, 3_000_000],
      ['bytes=5-99999999', 5, 3_000_000],
    ]
    for (const [range, start, end] of parts) {
      const part = await send('GET', path, { headers: { range } })
      assert.deepEqual([part.status, part.headers.get('content-range')], [206, `bytes ${start}-${end - 1}/3000000`])
      assert.ok(Buffer.from(await part.bytes()).equals(bytes.subarray(start, end)), range)
    }
    for (const range of ['bytes=0-1,5-6', 'lines=1-2', 'bytes=5-2', 'bytes=-'])
      assert.equal((await send('GET', path, { method: 'HEAD', headers: { range } })).status, 200, range)
    const behind = await send('GET', path, { headers: { range: 'bytes=3000000-' } })
    assert.deepEqual([behind.status, behind.headers.get('content-range')], [416, 'bytes */3000000'])
    assert.equal((await send('GET', path, { headers: { 'if-none-match': etag } })).status, 304)
    const other = await send('GET', path, { headers: { range: 'bytes=0-0', 'if-range': '"other"' } })
    assert.equal(other.status, 200)
    await other.body?.cancel()
    const head = await send('HEAD', path)
    assert.deepEqual([head.status, head.headers.get('content-length')], [200, String(bytes.length)])
  })

  it('a file is created once for an Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'once' }
    const one = await upload('the same', '?name=once', headers)
    const two = await upload('the same', '?name=once', headers)
    assert.deepEqual([two.status, two.body, two.headers.get('idempotency-replayed')], [201, one.body, 'true'])
    assert.equal((await upload('another', '?name=once', headers)).status, 422)
    assert.equal((await test.send('GET', `${files}?search=once`)).body.pagination.total, 1)
    const [row] = await test.sql<{ count: number }>`select count(*) as count from file where sha256 is null`
    assert.equal(row!.count, 0)
  })

  it('a file of another organization or project is 404', async () => {
    const { body } = await upload('secret')
    const stranger = await makeKey(test, await makePerson(test), ['admin'])
    for (const path of ['', '/content']) {
      const { status } = await send('GET', `${files}/${body.id}${path}`, {}, stranger.key)
      assert.equal(status, 404)
    }
    const other = await createProject(test.send, 'other')
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/content'],
      ['DELETE', ''],
    ] as const) {
      const reply = await test.send(method, `${other.path}/files/${body.id}${path}`)
      assert.deepEqual([reply.status, reply.body.error.details.resource_type], [404, 'file'])
    }
  })

  it('operations on files require the scopes of tasks', async () => {
    const owner = ownerOf(test)
    const reader = await makeKey(test, owner, ['agents:read'])
    const runner = await makeKey(test, owner, ['tasks:write'])
    assert.equal((await send('POST', files, { body: 'x' }, reader.key)).status, 403)
    assert.equal((await send('GET', files, {}, reader.key)).status, 200)
    assert.equal((await send('POST', files, { body: 'x' }, runner.key)).status, 201)
  })
})

describe('a backup', () => {
  it('a backup has every byte of a file', async () => {
    const { body } = await upload(Buffer.concat([png, Buffer.alloc(2_000_000, 7)]), '?name=kept')
    const folder = await mkdtemp(join(tmpdir(), 'cadre-files-'))
    const empty = await makeEmptyDatabase()
    try {
      const file = join(folder, 'backup.tar.gz')
      await save(test.service.context.database.settings, file)
      await load(file, empty.connection)
      const service = await startOn(empty.connection)
      try {
        const reply = await sender(service.url, test.owner.api_key)('GET', `${files}/${body.id}`)
        assert.deepEqual(reply.body, body)
        const headers = { 'x-api-key': test.owner.api_key }
        const content = await fetch(`${service.url}${files}/${body.id}/content`, { headers })
        assert.equal(digestOf(await content.bytes()), body.sha256)
      } finally {
        await service.stop()
      }
    } finally {
      await empty.drop()
      await rm(folder, { recursive: true, force: true })
    }
  })
})

describe('the bounds of files', () => {
  const rows = async (): Promise<number> => {
    const [row] = await test.sql<{ count: number }>`
      select (select count(*) from file) + (select count(*) from file_piece) as count`
    return row!.count
  }

  it('an upload of one byte too many ends with 413 and leaves nothing', async () => {
    const before = await rows()
    const bytes = Buffer.alloc(fileBounds.bytes + 1)
    const streamed = (): ReadableStream => new Blob([bytes]).stream()
    const bodies: RequestInit[] = [
      { body: bytes },
      { body: streamed(), duplex: 'half' },
      { body: form({ file: new Blob([bytes]) }) },
    ]
    for (const init of bodies) {
      const response = await send('POST', files, init)
      assert.equal(response.status, 413)
      assert.equal(((await response.json()) as any).error.code, 'file_too_large')
    }
    assert.equal(await rows(), before)
    const most = await upload(bytes.subarray(1))
    assert.deepEqual([most.status, most.body.bytes], [201, fileBounds.bytes])
  })

  it('an upload uses bounded memory', async () => {
    global.gc?.()
    const before = process.memoryUsage().arrayBuffers
    let most = 0
    const piece = Buffer.alloc(65_536, 'x')
    let sent = 0
    const body = new ReadableStream({
      pull(controller) {
        most = Math.max(most, process.memoryUsage().arrayBuffers - before)
        if (sent >= fileBounds.bytes) return controller.close()
        sent += piece.length
        controller.enqueue(new Uint8Array(piece))
      },
    })
    const response = await send('POST', files, { body, duplex: 'half' })
    assert.equal(response.status, 201)
    // The client is in the same process, and without a collection its garbage counts too.
    assert.ok(most < 64 * 1_048_576, `${most} bytes`)
  })

  it('an upload that is cut off at any byte leaves no row', async () => {
    const before = await rows()
    const points = [0, 1, 1_048_576, 2_500_000, ...Array.from({ length: 4 }, () => randomInt(4_000_000))]
    const { hostname, port } = new URL(test.url)
    for (const [type, start] of [
      ['text/plain', ''],
      ['multipart/form-data; boundary=b', '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'],
    ]) {
      for (const sent of points) {
        const started = rows()
        const socket = connect(Number(port), hostname)
        socket.on('error', () => {})
        socket.write(
          `POST ${files} HTTP/1.1\r\nhost: x\r\nx-api-key: ${test.owner.api_key}\r\ncontent-type: ${type}\r\ncontent-length: 4000000\r\n\r\n${start}`,
        )
        socket.write(Buffer.alloc(sent, 'x'))
        await started
        if (sent >= 1_048_576) await eventually(async () => (await rows()) > before)
        socket.destroy()
        await eventually(async () => (await rows()) === before).catch((cause: unknown) => {
          throw new Error(`rows are left of ${sent} bytes as ${type}`, { cause })
        })
      }
    }
  })

  it('a form with two files, or whose parts end too early, is refused, leaves nothing, and the service goes on', async () => {
    const before = await rows()
    const part = (name: string, text: string) =>
      `--b\r\ncontent-disposition: form-data; name="${name}"; filename="a.txt"\r\n\r\n${text}\r\n`
    const wrong: [sent: string, field: string][] = [
      [`${part('file', 'one')}${part('file', 'two')}--b--\r\n`, 'file'],
      [`${part('file', 'x'.repeat(3_000_000))}${part('file', 'two')}--b--\r\n`, 'file'],
      [`${part('file', 'one')}${part('other', 'two')}${part('another', 'three')}--b--\r\n`, 'body'],
      [`${part('file', 'one')}--b\r\ncontent-disp`, 'body'],
      [part('other', 'one').slice(0, -4), 'body'],
    ]
    for (const [sent, field] of wrong) {
      const { status, body } = await upload(sent, '', { 'content-type': 'multipart/form-data; boundary=b' })
      assert.deepEqual([status, body.error.details[0].field], [400, field], JSON.stringify(body))
    }
    await eventually(async () => (await rows()) === before)
  })

  it('an upload beyond the quota of its project is refused', async () => {
    const small = await startTestService({ CADRE_FILES_MAX_BYTES_PROJECT: '1500000' })
    try {
      const made = await small.send('POST', '/api/v1/projects', { body: { name: 'small' } })
      const path = `/api/v1/projects/${made.body.id}/files`
      const put = (bytes: number): Promise<Reply> =>
        small.send('POST', path, { body: 'x'.repeat(bytes), headers: { 'content-type': 'text/plain' } })
      assert.equal((await put(1_000_000)).status, 201)
      const { status, body } = await put(1_200_000)
      assert.deepEqual([status, body.error.code, body.error.details.limit], [429, 'quota_exceeded', 1_500_000])
      const { body: list } = await small.send('GET', path)
      assert.equal(list.pagination.total, 1)
      const removed = await small.send('DELETE', `${path}/${list.files[0].id}`)
      assert.equal(removed.status, 200, JSON.stringify(removed.body))
      const both = await Promise.all([put(1_000_000), put(1_000_000)])
      assert.deepEqual(
        both.map((one) => one.status).toSorted((one, other) => one - other),
        [201, 429],
        JSON.stringify(both.map((one) => one.body)),
      )
      const { body: limits } = await small.send('GET', '/api/v1/auth/limits')
      const kept = limits.retention.find((one: { kind: string }) => one.kind === 'files')
      assert.deepEqual([kept.days, kept.quota_bytes], [30, 1_500_000])
      assert.ok(kept.bytes > 1_000_000)
    } finally {
      await small.stop()
    }
  })

  it('files that no task named for thirty days, and uploads that a crash cut off, are removed', async () => {
    const old = await upload('old')
    const young = await upload('young')
    await test.sql`update file set created_at = now() - interval '31 days' where id = ${old.body.id}`
    await test.sql`
      insert into file (id, project_id, name, media_type, created_by, created_at)
      select 'file_cut', project_id, 'cut', 'text/plain', 'user_1', now() - interval '2 hours' from file where id = ${old.body.id}`
    await sweepFiles(test.sql)
    assert.equal((await test.send('GET', `${files}/${old.body.id}`)).status, 404)
    assert.equal((await test.send('GET', `${files}/${young.body.id}`)).status, 200)
    assert.equal((await test.sql`select 1 from file where id = 'file_cut'`).length, 0)
  })
})
