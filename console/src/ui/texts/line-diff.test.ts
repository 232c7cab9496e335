import assert from 'node:assert/strict'
import { test } from 'node:test'
import { comparedLines, diffLines } from './line-diff.ts'

const reportOf = (before: string, after: string): string =>
  diffLines(before, after)
    .map(({ kind, text }) => `${{ same: ' ', out: '-', in: '+' }[kind]}${text}`)
    .join('|')

test('a difference of two texts keeps the lines that both have, and both texts can be made from it', () => {
  assert.equal(reportOf('a\nb\nc', 'a\nx\nc'), ' a|-b|+x| c')
  assert.equal(reportOf('', 'a'), '+a')
  assert.equal(reportOf('a', ''), '-a')
  assert.equal(reportOf('a\nb', 'a\nb'), ' a| b')
  const [before, after] = ['one\ntwo\nthree\nfour', 'zero\none\nthree\nfive\nfour']
  const lines = diffLines(before, after)
  const of = (...kinds: string[]): string =>
    lines
      .filter(({ kind }) => kinds.includes(kind))
      .map(({ text }) => text)
      .join('\n')
  assert.equal(of('same', 'out'), before)
  assert.equal(of('same', 'in'), after)
  assert.equal(lines.filter(({ kind }) => kind === 'same').length, 3)
})

test('texts that are too long to compare are taken out and put in as a whole', () => {
  const long = 'x\n'.repeat(comparedLines + 5)
  assert.ok(diffLines(long, `${long}y`).every(({ kind }) => kind !== 'same'))
})
