import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { ToolError } from '../tool.ts'
import { addToQuery, fillUrl, parseUrlTemplate, type UrlTemplate } from './url-template.ts'

const parse = (text: string): UrlTemplate => {
  const template = parseUrlTemplate(text)
  if (typeof template === 'string') return assert.fail(template)
  return template
}
const secrets = (part: string, encode: (value: string) => string) =>
  part.replaceAll('${credentials.KEY}', encode('a/b?c#d')).replaceAll('${env.DOTS}', encode('..'))
const fill = (text: string, args: Record<string, unknown> = {}) => fillUrl(parse(text), args, secrets).href
const refused = (text: string, args: Record<string, unknown>) =>
  assert.throws(
    () => fill(text, args),
    (error) => error instanceof ToolError && error.code === 'invalid_arguments',
  )

describe('a URL with places', () => {
  it('a URL template encodes each argument and secret', () => {
    assert.equal(
      fill('https://a.example/v1/{city}/x?q={q}', { city: 'São Paulo/..', q: 'a&b=c#d' }),
      'https://a.example/v1/S%C3%A3o%20Paulo%2F../x?q=a%26b%3Dc%23d',
    )
    assert.equal(fill('https://a.example/{a}-{b}.json', { a: 1, b: true }), 'https://a.example/1-true.json')
    assert.equal(
      fill('https://a.example/bot${credentials.KEY}/send?k=${credentials.KEY}'),
      'https://a.example/bota%2Fb%3Fc%23d/send?k=a%2Fb%3Fc%23d',
    )
    assert.equal(fill('https://a.example'), 'https://a.example/')
    assert.equal(fill('https://a.example?q={q}', { q: '' }), 'https://a.example/?q=')
  })

  it('placeholders in arguments are not filled in', () => {
    assert.equal(
      fill('https://a.example/{a}', { a: '${credentials.KEY}{b}' }),
      'https://a.example/%24%7Bcredentials.KEY%7D%7Bb%7D',
    )
  })

  it('arguments cannot change the path of a URL template', () => {
    for (const id of ['', '.', '..']) refused('https://a.example/users/{id}/keys', { id })
    refused('https://a.example/{a}{b}', { a: '.', b: '.' })
    refused('https://a.example/%2e{a}', { a: '.' })
    refused('https://a.example/x/${env.DOTS}/y', {})
    for (const id of [undefined, null, {}, []]) refused('https://a.example/users/{id}', { id })
    refused('https://a.example/{toString}', {})
  })

  it('arguments cannot change the host or the number of segments of a URL template', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (id, q) => {
        let url: URL
        try {
          url = new URL(fill('https://a.example:8443/users/{id}/keys?q={q}', { id, q }))
        } catch (error) {
          return assert.ok(error instanceof ToolError)
        }
        assert.equal(url.origin, 'https://a.example:8443')
        assert.match(url.pathname, /^\/users\/[^/]+\/keys$/)
        assert.deepEqual([[...url.searchParams.keys()], url.hash], [['q'], ''])
        assert.equal(url.searchParams.get('q'), q.toWellFormed())
      }),
    )
  })

  for (const text of [
    '',
    'x',
    '/path',
    'ftp://a.example/',
    'https://{host}/',
    'https://a.{zone}.example/',
    'https://a.example:{port}/',
    'https://${credentials.KEY}.example/',
    'https://${env.HOST}/',
    'https://user:{p}@a.example/',
    'https://user@a.example/',
    '{scheme}://a.example/',
    'https://a.example\\{x}/',
    'https://a.example/#{x}',
    'https://a.example/ x',
    'https://a.example/{',
    'https://a.example/}',
    'https://a.example/{}',
    'https://a.example/{a b}',
    'https://a.example/{a{b}}',
    'https://a.example/../{a}',
    'https://a.example/%2E%2e/{a}',
    'https:///{a}',
    'https://',
    'https:a.example/{x}',
    'https://exa mple/',
  ])
    it(`the URL template ${JSON.stringify(text)} is refused`, () =>
      assert.equal(typeof parseUrlTemplate(text), 'string'))
})

it('a query has the items of a list one by one, and objects as JSON', () => {
  const url = new URL('https://a.example/?fixed=1')
  addToQuery(url, { list: ['a', 2, null], object: { a: 1 }, none: null, missing: undefined, flag: false, text: 'a&b' })
  assert.deepEqual(
    [...url.searchParams],
    [
      ['fixed', '1'],
      ['list', 'a'],
      ['list', '2'],
      ['object', '{"a":1}'],
      ['flag', 'false'],
      ['text', 'a&b'],
    ],
  )
})
