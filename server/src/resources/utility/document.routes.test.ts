import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { parse } from 'yaml'
import { operations } from '#contract/operations.ts'
import { root } from '../../platform/root.ts'
import { type TestService } from '../../../test/harness.ts'
import { shareTestService } from '../../../test/shared-service.ts'
import { llmsText } from './llms-text.ts'
import { publishedDocument } from './docs.ts'
import { withServedLinks } from './written-pages.ts'

let test: TestService
before(async () => {
  test = await shareTestService()
})
after(() => test.stop())

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${test.url}${path}`, { headers })

/** Holds a text to what all of them promise: public, and not sent again to those who know it. */
async function assertKept(path: string, type: string): Promise<string> {
  const first = await get(path)
  assert.deepEqual([first.status, first.headers.get('content-type')], [200, type])
  assert.equal(first.headers.get('cache-control'), 'no-cache')
  assert.equal(first.headers.get('x-content-type-options'), 'nosniff')
  const etag = first.headers.get('etag') ?? ''
  assert.match(etag, /^W\/"[\w-]{22}"$/)
  const again = await get(path, { 'if-none-match': etag })
  assert.deepEqual([again.status, again.headers.get('etag'), await again.text()], [304, etag, ''])
  const other = await get(path, { 'if-none-match': '"other"' })
  const [text, repeated] = [await first.text(), await other.text()]
  assert.deepEqual([other.status, repeated === text], [200, true])
  return text
}

describe('/openapi.yaml', () => {
  it('/openapi.yaml is the document of /api/v1/docs in YAML, also for readers of YAML 1.1', async () => {
    const text = await assertKept('/openapi.yaml', 'application/yaml')
    assert.ok(text.startsWith('openapi: 3.0.3\ninfo:\n  title: Cadre\n'), text.slice(0, 100))
    const { body: json } = await test.send('GET', '/api/v1/docs', { key: null })
    assert.deepEqual(parse(text), json)
    // These would be other values there.
    assert.doesNotMatch(text, /(: |- )(\d{4}-\d\d-\d\dT|(on|off|yes|no)$)/m)
  })

  it('/openapi.yaml is sent compressed to clients that accept it', async () => {
    const plain = await get('/openapi.yaml', { 'accept-encoding': 'identity' })
    const zipped = await get('/openapi.yaml', { 'accept-encoding': 'gzip' })
    assert.deepEqual(
      [plain, zipped].map(({ headers }) => headers.get('content-encoding')),
      [null, 'gzip'],
    )
    assert.equal(zipped.headers.get('vary'), 'accept-encoding')
    assert.equal(await zipped.text(), await plain.text())
  })
})

describe('/llms.txt', () => {
  it('/llms.txt says what the service is, and every address in it leads to a text of this service', async () => {
    const text = await assertKept('/llms.txt', 'text/plain; charset=utf-8')
    assert.match(text, /^# Cadre\n\n> Projects, agents, [^\n]+\n\n/)
    for (const tag of new Set(operations.map(({ tag }) => tag))) assert.ok(text.includes(`\n- ${tag}: `), tag)
    const addresses = [...text.matchAll(/^- \[[^\]]+\]\(([^)]+)\)/gm)].map(([, address = '']) => address)
    for (const path of ['/openapi.yaml', '/api/v1/docs', '/docs', '/docs/guides/tasks.md', '/docs/reference/limits.md'])
      assert.ok(addresses.includes(`${test.url}${path}`), path)
    const replies = await Promise.all(addresses.map(async (address) => [address, (await fetch(address)).status]))
    assert.deepEqual(
      replies.filter(([, status]) => status !== 200),
      [],
    )
  })

  it('/llms.txt of an installation without the pages has no empty sections', () => {
    const text = llmsText(publishedDocument('https://cadre.example.com'), 'https://cadre.example.com', [])
    assert.deepEqual(
      [...text.matchAll(/^## (.+)$/gm)].map(([, title]) => title),
      ['API'],
    )
  })
})

describe('the pages of the documentation', () => {
  it('guides and reference are served unchanged, except for links to files that are not served', async () => {
    const withoutLinks = (text: string): string =>
      text.replaceAll(/!?\[((?:`[^`\n]*`|[^\][`])*)\]\([^)\s]+\)/g, (_, words) => words)
    for (const path of ['docs/guides/tasks.md', 'docs/reference/limits.md'])
      assert.equal(
        withoutLinks(await assertKept(`/${path}`, 'text/markdown; charset=utf-8')),
        withoutLinks(readFileSync(join(root, path), 'utf8')),
        path,
      )
  })

  it('every relative link of a served page leads to a text of this service', async () => {
    const map = await (await get('/llms.txt')).text()
    const starts = [...map.matchAll(/\]\(([^)]+[.]md)\)/g)].map(([, address = '']) => address)
    for (const path of ['README.md', 'SECURITY.md', 'AGENTS.md', 'guides/tasks.md', 'reference/README.md'])
      assert.ok(starts.includes(`${test.url}/docs/${path}`), path)
    const links = await Promise.all(
      starts.map(async (start) => {
        const text = await (await fetch(start)).text()
        const prose = text.replaceAll(/^```.*?^```/gms, '').replaceAll(/`[^`\n]*`/g, 'code')
        const relative = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].filter(([, link = '']) => !/^([a-z]+:|#)/.test(link))
        return relative.map(([, link = '']) => ({ start, link }))
      }),
    )
    assert.ok(links.flat().length > 100, `${links.flat().length} links`)
    const leads = async ({ start, link }: { start: string; link: string }): Promise<boolean> =>
      (await fetch(new URL(link, start), { method: 'HEAD', redirect: 'manual' })).status === 200
    const found = await Promise.all(links.flat().map(async (one) => ((await leads(one)) ? [] : [one])))
    assert.deepEqual(found.flat(), [])
  })

  it('links of a page that are in code, or lead elsewhere, stay unchanged', () => {
    const text = '`[a](b.md)` [here](#here) [web](https://x.example) [`c`](d.md#e) ![picture](../images/f.webp)\n'
    const block = '```sh\n[a](b.md)\n```\n'
    const shown = '`[a](b.md)` [here](#here) [web](https://x.example) [`c`](d.md#e) picture\n'
    const served = new Set(['docs/guides/d.md', 'README.md'])
    assert.equal(withServedLinks(text + block, 'docs/guides/a.md', served), shown + block)
    assert.equal(withServedLinks('[read](../../README.md#b)', 'docs/guides/a.md', served), '[read](../README.md#b)')
    assert.equal(withServedLinks('[d](docs/guides/d.md)', 'README.md', served), '[d](guides/d.md)')
  })

  it('no file other than a page can be read', async () => {
    for (const name of ['nothing.md', 'tasks', '..%2fscaling.md', '..%2f..%2fpackage.json', '%2fetc%2fpasswd', '.'])
      assert.equal((await get(`/docs/guides/${name}`)).status, 404, name)
  })
})
