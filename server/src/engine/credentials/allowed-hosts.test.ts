import assert from 'node:assert/strict'
import { it } from 'node:test'
import { allowsMore, mayBeSentTo, normalPattern, patternOf } from './allowed-hosts.ts'

it('a host pattern is a host or a wildcard, with or without a port, in a normal form', () => {
  for (const [given, kept] of [
    ['API.Example.com', 'api.example.com'],
    ['api.example.com.', 'api.example.com'],
    ['*.Example.com', '*.example.com'],
    ['localhost:8080', 'localhost:8080'],
    ['api.example.com:0443', 'api.example.com:443'],
    ['127.1', '127.0.0.1'],
    ['0x7f000001:9', '127.0.0.1:9'],
    ['[0:0::1]:80', '[::1]:80'],
  ] as const)
    assert.equal(normalPattern(given), kept, given)
  for (const given of [
    ...['', '*', '*.', '*.com', '*.*.example.com', 'a*.example.com', '.example.com', 'a..example.com', '*.10.0.0.1'],
    ...[
      'https://example.com',
      'example.com/path',
      'user@example.com',
      'example.com:0',
      'example.com:65536',
      'a b',
      '[::1',
    ],
  ])
    assert.equal(normalPattern(given), undefined, given)
  assert.equal(patternOf('https://mcp.example.com/mcp'), 'mcp.example.com')
  assert.equal(patternOf('http://127.0.0.1:8080/mcp'), '127.0.0.1:8080')
})

it('a URL is allowed by its host and port alone, in any notation', () => {
  const allowed = ['api.example.com', '*.wild.example', 'port.example:8443', '127.0.0.1', '[::1]']
  for (const url of [
    ...['https://api.example.com/x?y', 'http://API.EXAMPLE.COM.:81/', 'https://a.b.wild.example'],
    ...['https://port.example:8443/', 'http://2130706433/', 'http://[0:0::1]:1/'],
  ])
    assert.equal(mayBeSentTo(allowed, url), true, url)
  for (const url of [
    ...[
      'https://evil.example',
      'https://api.example.com.evil.example/',
      'https://xapi.example.com',
      'https://wild.example',
    ],
    ...['https://api.example.com@evil.example/', 'https://evilwild.example', 'https://port.example/', 'not a URL'],
    ...['https://evil.example/?api.example.com', 'https://evil.example#.wild.example', 'https://127.0.0.2'],
  ])
    assert.equal(mayBeSentTo(allowed, url), false, url)
  assert.equal(mayBeSentTo(null, 'https://anywhere.example'), true)
  assert.equal(mayBeSentTo(['a.example:443'], 'https://a.example/'), true)
  assert.equal(mayBeSentTo(['a.example:443'], 'http://a.example/'), false)
})

it('added host patterns allow more, and removed ones do not', () => {
  assert.equal(allowsMore(['a.test', 'b.test'], ['b.test']), false)
  assert.equal(allowsMore(['a.test'], ['a.test', 'b.test']), true)
  assert.equal(allowsMore(['*.a.test'], ['x.a.test:1', '*.a.test']), true)
  assert.equal(allowsMore(null, ['a.test']), false, 'where any host was allowed, any pattern is fewer')
})
