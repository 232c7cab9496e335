import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AllowListError, isInside, isNamed, isPublic, parseAllowList } from './address-rules.ts'

describe('public addresses', () => {
  const notPublic = list(`
    0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.0.1
    169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255
    198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ::ffff:127.0.0.1
    ::ffff:93.184.216.34 ::127.0.0.1 64:ff9b::7f00:1 64:ff9b:1::1 100::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0
    fec0::1 ff02::1 4000::1 1fff::1 2001::1 2001:0:7f00:1:: 2001:1ff:ffff:: 2001:db8::1 2002:7f00:1:: 3fff::1
    3fff:fff::1 2606:4700::1%eth0 127.1 0x7f.0.0.1 017700000001`)
  for (const address of [...notPublic, 'example.com', '']) {
    it(`the address ${address || '(empty)'} is not public`, () => assert.equal(isPublic(address), false))
  }

  const edges = list(`
    1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
    172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.88.98.255 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
    203.0.112.255 203.0.114.0 223.255.255.255 2000::1 2001:200::1 2001:db7:ffff::1 2001:db9::1 2003::1 2606:4700::1111
    3ffe::1 3fff:1000::1`)
  for (const address of edges) {
    it(`the address ${address} is public`, () => assert.equal(isPublic(address), true))
  }
})

describe('an allow list', () => {
  it('an allow list opens exactly its keywords, ranges and addresses', () => {
    const { ranges } = parseAllowList(['loopback', 'Private', '100.64.0.0/10', '192.0.2.7', 'fe80::/10', ' '])
    for (const inside of list('127.9.9.9 ::1 10.1.1.1 172.16.1.1 192.168.3.3 fd00::1 100.64.1.1 192.0.2.7 fe80::1')) {
      assert.ok(isInside(inside, ranges), inside)
    }
    for (const outside of list('169.254.169.254 0.0.0.0 192.0.2.8 :: ::ffff:127.0.0.1 fe80::1%eth0')) {
      assert.ok(!isInside(outside, ranges), outside)
    }
  })

  it('an allow list matches hosts in any case, and subdomains of a suffix but not the suffix', () => {
    const allow = parseAllowList(['Hooks.Example.com', '*.corp.example', 'bücher.example'])
    assert.ok(isNamed(allow, 'hooks.example.com'))
    assert.ok(isNamed(allow, 'a.b.corp.example'))
    assert.ok(isNamed(allow, 'xn--bcher-kva.example'))
    for (const other of list('example.com evilhooks.example.com corp.example notcorp.example hooks.example.com.evil')) {
      assert.ok(!isNamed(allow, other), other)
    }
  })

  it('an allow list matches endpoints exactly, also those of IPv6', () => {
    const { endpoints } = parseAllowList(['receiver:9000', '127.0.0.1:9000', '[::1]:9000'])
    assert.deepEqual([...endpoints], ['receiver:9000', '127.0.0.1:9000', '::1:9000'])
  })

  const meaningless = [
    'a b',
    ...list('10.0.0.0/33 host/8 https://example.com * *. host:0 host:70000 user@host 10.0.0.0/'),
  ]
  for (const entry of meaningless) {
    it(`an allow list refuses the entry "${entry}" and names it`, () => {
      assert.throws(
        () => parseAllowList([entry]),
        (error) => error instanceof AllowListError && error.message.includes(entry),
      )
    })
  }
})

function list(text: string): string[] {
  return text.trim().split(/\s+/)
}
